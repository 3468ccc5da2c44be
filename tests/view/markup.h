// A strict little check that text is well-formed XML: tags nest, attributes are quoted, entities are known.
#pragma once

#include <glib.h>

#include <string>

namespace qkv::testing {

/// "" when glib's parser accepts it, else its complaint.
inline std::string markup_problem(const std::string& text) {
  const GMarkupParser parser{};
  GMarkupParseContext* context =
      g_markup_parse_context_new(&parser, static_cast<GMarkupParseFlags>(0), nullptr, nullptr);
  GError* error = nullptr;
  std::string problem;
  if (!g_markup_parse_context_parse(context, text.data(), static_cast<gssize>(text.size()), &error) ||
      !g_markup_parse_context_end_parse(context, &error)) {
    problem = error->message;
    g_error_free(error);
  }
  g_markup_parse_context_free(context);
  return problem;
}

}  // namespace qkv::testing
