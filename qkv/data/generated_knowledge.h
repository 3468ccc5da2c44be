// Invented people and their birth places, in the format of the real study, so that it runs without data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/data/knowledge.h"

namespace qkv {

struct GeneratedKnowledgeOptions {
  uint64_t seed = 1;
  int64_t people = 300;
  int64_t places = 20;     // chance is about one in this many
  int64_t documents = 3;   // about each person, each in other words
  double dev_share = 0.3;  // of the people whose question is kept from training
  int64_t strangers = 20;  // names that no text mentions
};

/// Everyone is in the documents; a person's question is in train or in dev, never in both.
struct GeneratedKnowledge {
  std::vector<std::string> documents;
  std::vector<Fact> train, dev;
  std::vector<std::string> strangers;  // names
};

/// Throws ConfigError when a number is not possible (fewer than 2 places, more than there are names for).
GeneratedKnowledge generate_knowledge(const GeneratedKnowledgeOptions& options);

}  // namespace qkv
