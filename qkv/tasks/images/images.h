// Task "images": which class a picture shows, by a Vision Transformer.
#pragma once

#include "qkv/tasks/task.h"

namespace qkv {

/// Fashion-MNIST where it is installed, IDX files or folders of PNG files (one per class) where --data names them, and
/// generated shapes where there is nothing. Part of the training images is kept for validation; the test images are
/// only looked at by evaluate("test").
Settings images_settings();
inline constexpr const char* kImagesExamples =
    "  qkv train images --data shapes            generated pictures\n"
    "  qkv train images --data fashion-mnist     a folder of IDX files, or of PNG files, one folder per class\n"
    "  qkv train images --attention mean         every patch looks everywhere alike\n";

inline constexpr const char* kImagesAbout =
    "The model cuts a picture into square patches, turns each into a vector by one linear map, adds where it was, and "
    "lets all of them look at each other, layer after layer. One more token, the class token, belongs to no patch: "
    "what "
    "it has gathered in the end decides the class. Its attention shows which parts of the picture it gathered from.";
std::unique_ptr<Task> make_images(const Settings& settings, const std::string& assets);

}  // namespace qkv
