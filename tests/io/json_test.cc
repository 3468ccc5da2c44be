// The JSON parser: limits on depth and size, names used once, and getters that say what is wrong where.
#include "qkv/io/json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "io/temp_folder.h"
#include "qkv/base/budget.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using testing::message_of;
using testing::TempFolder;

std::string nested(size_t depth) { return std::string(depth, '[') + "1" + std::string(depth, ']'); }

std::string refusal(const std::string& text, size_t most_depth = 64) {
  return message_of<JsonError>([&] {
    parse_json(text, {.where = "a.json", .what = "a shopping list", .most_bytes = 4u << 20, .most_depth = most_depth});
  });
}

TEST(JsonDoor, KeepsOrderAndValues) {
  const std::string text = R"({"z":[1,-2,2.5,true,null,"ü"],"a":{"k":18446744073709551615}})";
  EXPECT_EQ(parse_json(text, {.where = "a.json"}).dump(), text);
}

TEST(JsonDoor, NamesInMessagesAreOneShortLineOfWholeCharacters) {
  EXPECT_EQ(quoted_name("a\nb\x1b"), "'a?b?'");
  EXPECT_EQ(quoted_name(std::string(119, 'a') + "ü"), "'" + std::string(119, 'a') + "...'");
  EXPECT_EQ(quoted_name(std::string(118, 'a') + "ü"), "'" + std::string(118, 'a') + "ü'");
  EXPECT_EQ(quoted_name(std::string(1000, '\x80')), "'...'");
}

TEST(JsonDoor, StopsWithTheRequestThatReads) {
  std::string text = "[";
  while (text.size() < (1u << 20)) text += "0,";
  text += "0]";
  Budget budget(std::chrono::hours(1), 0);
  const BudgetScope scope(&budget);
  EXPECT_NO_THROW(parse_json(text, {.where = "a.json"}));
  budget.cancel();
  EXPECT_THROW(parse_json(text, {.where = "a.json"}), BudgetError);
}

TEST(JsonDoor, DepthIsLimited) {
  EXPECT_EQ(refusal(nested(64)), "");
  EXPECT_EQ(refusal(nested(65)), "a.json: nested too deeply; at most 64 levels are read");
  EXPECT_NE(refusal(nested(1'000'000)), "");
  EXPECT_NE(refusal(std::string(1'000'000, '[')), "");
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += R"({"a":[)";
  EXPECT_EQ(refusal(objects), "a.json: nested too deeply; at most 64 levels are read");
  EXPECT_EQ(refusal(nested(9), 8), "a.json: nested too deeply; at most 8 levels are read");
}

TEST(JsonDoor, RefusesWhatIsNotJson) {
  for (const char* text : {"", "{", "[1,]", "nul", "{\"a\":1}x", "\"\xff\"", "{a:1}", "1e999", "[1 2]", "NaN"}) {
    EXPECT_EQ(refusal(text), "a.json: not a shopping list") << text;
  }
  EXPECT_EQ(refusal(R"({"a":1,"b":{"a":2},"a":3})"), "a.json: has 'a' twice");
  EXPECT_EQ(refusal(std::string((4u << 20) + 1, ' ')), "a.json: 4194305 bytes, more than the 4194304 allowed");
}

// Looking for each new name among all earlier ones would take minutes here.
TEST(JsonDoor, ManyNamesTakeNoTime) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":0";
  EXPECT_EQ(refusal(text + "}"), "");
}

TEST(JsonDoor, GettersCheckKindAndRange) {
  const Json json = parse_json(
      R"({"n":-5,"big":1e308,"huge":18446744073709551615,"x":2.5,"t":"text","f":true,"l":[1,"a"],"o":{"seed":-1}})",
      {.where = "s.json"});
  const JsonObject o(json, "s.json");
  EXPECT_EQ(o.integer("n", -5, 0), -5);
  EXPECT_EQ(o.number("x"), 2.5);
  EXPECT_EQ(o.text("t"), "text");
  EXPECT_TRUE(o.flag("f"));
  const auto error = [&](auto&& read) { return message_of<JsonError>(read); };
  EXPECT_EQ(error([&] { o.integer("n"); }), "s.json: 'n' is -5, expected a whole number of at least 0");
  EXPECT_NE(error([&] { o.integer("big"); }), "");
  EXPECT_NE(error([&] { o.integer("huge"); }), "");
  EXPECT_NE(error([&] { o.integer("x"); }), "");
  EXPECT_NE(error([&] { o.integer("t"); }), "");
  EXPECT_EQ(error([&] { o.number("x", 3, 4); }), "s.json: 'x' is 2.5, expected a number between 3 and 4");
  EXPECT_EQ(error([&] { o.number("n", 0); }), "s.json: 'n' is -5, expected a number of at least 0");
  EXPECT_EQ(error([&] { o.text("f"); }), "s.json: 'f' is true, expected text");
  EXPECT_EQ(error([&] { o.flag("t"); }), "s.json: 't' is 'text', expected true or false");
  EXPECT_EQ(error([&] { o.texts("l"); }), "s.json: 'l' is 1, expected a list of texts");
  EXPECT_EQ(error([&] { o.numbers("l"); }), "s.json: 'l' is 'a', expected a number");
  EXPECT_EQ(error([&] { o.numbers("o"); }), "s.json: 'o' is an object, expected a list");
  EXPECT_EQ(error([&] { o.object("o").integer("seed"); }),
            "s.json: 'o.seed' is -1, expected a whole number of at least 0");
  EXPECT_EQ(error([&] { o.object("l"); }), "s.json: 'l' is not a JSON object");
  EXPECT_EQ(error([&] { o.number("lost"); }), "s.json: 'lost' is missing");
  EXPECT_EQ(error([&] { JsonObject(json.at("l"), "l.json"); }), "l.json: not a JSON object");
}

TEST(JsonDoor, FiguresThatAreNotFiniteComeBack) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Json written{
      {"a", figure_json(infinity)}, {"b", figure_json(-infinity)}, {"c", figure_json(NAN)}, {"d", figure_json(0.25)}};
  const Json read = parse_json(written.dump(), {.where = "m"});
  const JsonObject o(read, "m");
  EXPECT_EQ(o.figure("a"), infinity);
  EXPECT_EQ(o.figure("b"), -infinity);
  EXPECT_TRUE(std::isnan(o.figure("c")));
  EXPECT_EQ(o.figure("d"), 0.25);
  const Json old{{"perplexity", nullptr}};  // as 0.1 wrote it
  EXPECT_TRUE(std::isnan(JsonObject(old, "m").figure("perplexity")));
}

TEST(JsonDoor, FilesAreLimitedToo) {
  const TempFolder folder;
  write_file_atomic(folder / "a.json", std::string_view(R"({"a": 1})"));
  EXPECT_EQ(read_json(folder / "a.json", "a list").at("a"), 1);
  EXPECT_NE(message_of<IoError>([&] { read_json(folder / "a.json", "a list", 4); }), "");
  EXPECT_NE(message_of<IoError>([&] { read_json(folder / "none.json", "a list"); }), "");
}

}  // namespace
}  // namespace qkv
