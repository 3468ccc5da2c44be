// The table of tasks.
#include <algorithm>

#include "qkv/base/error.h"
#include "qkv/tasks/images/images.h"
#include "qkv/tasks/knowledge/knowledge.h"
#include "qkv/tasks/reverse.h"
#include "qkv/tasks/task.h"
#include "qkv/tasks/text.h"
#include "qkv/tasks/translate/translate.h"

namespace qkv {
namespace {

constexpr TaskSpec kTasks[] = {
    {"reverse", "strings over a small alphabet, written backwards", reverse_settings, make_reverse, InputKind::text,
     kReverseAbout, kReverseExamples},
    {"translate", "German to English, or any two languages with parallel text", translate_settings, make_translate,
     InputKind::text, kTranslateAbout, kTranslateExamples},
    {"images", "the class of a picture, from its patches", images_settings, make_images, InputKind::picture,
     kImagesAbout, kImagesExamples},
    {"knowledge", "where people were born, learnt by reading about them", knowledge_settings, make_knowledge,
     InputKind::question, kKnowledgeAbout, kKnowledgeExamples},
    {"text", "any text, predicted token by token, and continued", text_settings, make_text, InputKind::text, kTextAbout,
     kTextExamples},
};

std::vector<std::string> first_tokens(const std::vector<std::string>& tokens, int64_t n) {
  std::vector<std::string> some(tokens.begin(),
                                tokens.begin() + std::min<int64_t>(n, static_cast<int64_t>(tokens.size())));
  while (static_cast<int64_t>(some.size()) < n) some.push_back(std::to_string(some.size()));
  return some;
}

}  // namespace

std::vector<std::string> TracedExample::row_tokens(const AttentionTrace& trace) const {
  return first_tokens(rows_are_target(trace.site) ? target : source, trace.Lq);
}

std::vector<std::string> TracedExample::column_tokens(const AttentionTrace& trace) const {
  return first_tokens(columns_are_target(trace.site) ? target : source, trace.Lk);
}

bool names_no_file(InputKind kind, std::string_view input) {
  return kind != InputKind::picture || input.starts_with("data:") || input.starts_with("val:") ||
         input.starts_with("test:");
}

std::span<const TaskSpec> task_table() { return kTasks; }

const TaskSpec& find_task(const std::string& name) {
  std::vector<std::string> names;
  for (const TaskSpec& spec : task_table()) {
    if (name == spec.name) return spec;
    names.emplace_back(spec.name);
  }
  throw ConfigError(unknown_name("task", name, names));
}

}  // namespace qkv
