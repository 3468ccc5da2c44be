// Task "translate": sentences of one language into another, by a recurrent model or a Transformer.
#pragma once

#include "qkv/tasks/task.h"

namespace qkv {

inline constexpr const char* kTranslateExamples =
    "  qkv train translate                       generated German, a small model: a minute or so\n"
    "  qkv train translate --data multi30k       real text, the full model\n"
    "  qkv train translate --model transformer   another family, with its own defaults\n"
    "  qkv train translate --train-src a.de --train-tgt a.en --val-src b.de --val-tgt b.en\n";

inline constexpr const char* kTranslateAbout =
    "A sentence of one language is read, its translation is written token by token. Without attention the decoder "
    "knows only what fits into one state; with the mean of the source states it knows which words there were; with "
    "attention it looks at the word it is about to translate. The maps show this: near the diagonal while both "
    "languages go the same way, and jumps where German keeps its verb for the end. The losses of training include "
    "label smoothing and dropout, those of validation do not; a loss per word makes tokenizers comparable.";

Settings translate_settings();
std::unique_ptr<Task> make_translate(const Settings& settings, const std::string& assets);

}  // namespace qkv
