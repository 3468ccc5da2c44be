// Names of enumerations: printing, parsing, lists, settings, all from one table.
#include "qkv/base/names.h"

#include <gtest/gtest.h>

#include "io/temp_folder.h"
#include "qkv/base/score.h"
#include "qkv/base/settings.h"

namespace qkv {
namespace {

using testing::message_of;

enum class Fruit { apple, pear, quince };

}  // namespace

template <>
struct Names<Fruit> {
  static constexpr const char* what = "fruit";
  static constexpr NameRow<Fruit> rows[] = {{Fruit::pear, "pear"}, {Fruit::apple, "apple", "red"}};
};

namespace {

static_assert(row_of(Fruit::apple).value == Fruit::apple);

TEST(Names, ReadBackAsPrinted) {
  for (const Fruit f : {Fruit::apple, Fruit::pear}) EXPECT_EQ(parse<Fruit>(name_of(f)), f);
  for (const auto& row : Names<Normaliser>::rows) EXPECT_EQ(parse<Normaliser>(name_of(row.value)), row.value);
}

TEST(Names, AreListedInTheTablesOrder) {
  EXPECT_EQ(choices<Fruit>(), (std::vector<std::string>{"pear", "apple"}));
  EXPECT_EQ(choices<Fruit>([](const auto& row) { return *row.meaning != '\0'; }), std::vector<std::string>{"apple"});
  EXPECT_EQ(listed({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(listed({"a", "b", "c"}, " or "), "a, b or c");
  EXPECT_EQ(listed({"a"}, " or "), "a");
}

TEST(Names, UnknownOnesAreErrorsThatListTheOthers) {
  EXPECT_EQ(message_of<ConfigError>([] { parse<Fruit>("plum"); }), "unknown fruit 'plum'; available: pear, apple");
  EXPECT_EQ(message_of<Error>([] { name_of(Fruit::quince); }), "[names] a fruit without a name");
}

TEST(Names, AreChoicesOfSettings) {
  Settings s;
  s.choice("fruit", Fruit::apple, "to eat");
  EXPECT_EQ(s.get<Fruit>("fruit"), Fruit::apple);
  s.set("fruit", "pear");
  EXPECT_EQ(s.get<Fruit>("fruit"), Fruit::pear);
  EXPECT_EQ(message_of<ConfigError>([&] { s.set("fruit", "plum"); }), "--fruit: 'plum' is not one of: pear, apple");
}

}  // namespace
}  // namespace qkv
