// A run as one file: an uncompressed .tar of its folder, to send, to publish and to open elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/io/byte_source.h"
#include "qkv/io/file.h"

namespace qkv {

/// What goes into the archive.
struct ArchiveOptions {
  int64_t checkpoints = 0;                 // at most; the newest, the best and others evenly between; 0: all of them
  bool optimizer = true;                   // with what a training needs to continue
  std::vector<std::string> examples = {};  // inputs to offer where the run's data are not at hand
  std::string recordings = {};             // a file of write_recordings(), which goes in place of the model
};

/// The run in that folder, as files below NAME/. Throws IoError.
Bytes pack_run(const std::string& path, const std::string& name, const ArchiveOptions& options = {});

/// Unpacks an archive of one run into root/NAME, or NAME-2, NAME-3, … where that is taken, and returns its path. Only
/// files with a run's own names are taken, and only a run that opens. It is read in pieces. Throws IoError naming
/// `file`.
std::string unpack_run(const ByteSource& archive, const std::string& file, const std::string& root);
std::string unpack_run(std::span<const std::byte> archive, const std::string& file, const std::string& root);

/// Whether a file of a run may have this place below its folder.
bool belongs_to_run(const std::string& place);
/// The files of the run in that folder, by their places below it.
std::vector<std::string> run_files(const std::string& path);
/// Writes one file of the run in that folder, or removes it, for those who carry a run file by file. A checkpoint's
/// folder goes with its last file. Throws IoError for a name that no file of a run has.
void put_run_file(const std::string& path, const std::string& name, std::optional<std::span<const std::byte>> bytes);

/// The examples an archive brought along for the run in that folder; none for other runs. Throws IoError.
std::vector<std::string> packed_examples(const std::string& path);

}  // namespace qkv
