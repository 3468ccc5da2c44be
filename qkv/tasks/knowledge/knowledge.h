// Task "knowledge": a character GPT that learns where people were born by reading about them.
#pragma once

#include <memory>
#include <string>

#include "qkv/tasks/task.h"

namespace qkv {

/// Stage "pretrain" reads documents with spans hidden; stage "finetune" learns to answer questions from the training
/// pairs. The questions asked in the end are about other people: what is known of them was read in pretraining.
Settings knowledge_settings();
inline constexpr const char* kKnowledgeExamples =
    "  qkv train knowledge --out runs/read                      reads about invented people\n"
    "  qkv train knowledge --stage finetune --from runs/read    learns to answer, with that run's data and sizes\n"
    "  qkv train knowledge --data birthplace                    real people; 'qkv study knowledge' does it all\n";

inline constexpr const char* kKnowledgeAbout =
    "A character model reads short texts about people, and then learns to answer \"Where was … born?\" from training "
    "pairs. It is asked about people whom no training pair mentions: what it knows of them it has read. Read with "
    "spans "
    "hidden (--ask 0), that is their text; with --ask above 0 texts are also read as the question itself, with the "
    "place that a small model found in them. Without the reading, the best it can do is to name places that are "
    "common.";
std::unique_ptr<Task> make_knowledge(const Settings& settings, const std::string& assets);

/// One answer to every question of a file (empty: the generated ones): how often it is right.
/// Throws IoError as read_facts does.
Evaluation knowledge_baseline(const std::string& answer, const std::string& path);

}  // namespace qkv
