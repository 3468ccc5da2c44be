// qkv site: the page with its runs as a folder of static files, for any web server, or as one file.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <set>

#include "qkv/app/cli.h"
#include "qkv/app/console.h"
#include "qkv/app/run_commands.h"
#include "qkv/app/site_runs.h"
#include "qkv/base/base64.h"
#include "qkv/base/error.h"
#include "qkv/figures/number.h"
#include "qkv/io/folder.h"
#include "qkv/io/json.h"
#include "qkv/version.h"

namespace qkv::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "Examples:\n"
    "  ./run site --out site                        a small model is trained for it\n"
    "  ./run site --out site runs/reverse-dot       with a run of yours\n"
    "  ./run site --single site.html                everything in one file, for a double click\n"
    "\n'./run site' builds the page for the browser first, which needs emscripten; docs/SITE.md says how to publish "
    "it.\n";

constexpr const char* kPageFiles[] = {"index.html", "app.js",   "app.css",     "worker.js",
                                      "offline.js", "qkv.wasm", "licences.txt"};
constexpr const char* kSinglePage = "single.html";  // holds all of them, and a mark where the runs go
constexpr const char* kRunsMark = "<!-- runs -->\n";
constexpr const char* kIndex = "site.json";
constexpr int64_t kMostBytes = 50'000'000;  // of all runs

struct SiteArguments {
  std::string out, single, page, inputs;
  std::vector<std::string> runs;
  bool large = false;
};

std::string megabytes(int64_t bytes) { return format_number(static_cast<double>(bytes) / 1e6, 3) + " MB"; }

/// The files of the runs that a site in this folder lists; none where its list is not one that qkv wrote.
std::set<std::string> listed_files(const std::string& out) {
  std::set<std::string> files;
  try {
    const Json index = read_json(out + "/" + kIndex, "the list of a site");
    if (!index.is_object() || !index.contains("qkv")) return files;
    for (const Json& run : index.value("runs", Json::array())) files.insert(run.value("file", ""));
    files.insert(kIndex);
  } catch (const std::exception&) {  // not JSON, not readable, or of other members
  }
  return files;
}

/// Whether a site has a file or folder of this name.
bool belongs(const std::string& place, const std::set<std::string>& listed) {
  const bool page = std::find(std::begin(kPageFiles), std::end(kPageFiles), place) != std::end(kPageFiles);
  return page || place == "runs" || listed.contains(place);
}

/// A place for the site: nothing there, an empty folder, or a site and nothing else, which is replaced.
void check_place(const std::string& out) {
  std::error_code error;
  const bool site = fs::exists(out + "/" + kIndex, error);
  if (fs::exists(out, error) && !site && !(fs::is_directory(out, error) && fs::is_empty(out, error))) {
    throw IoError("cannot write the site to " + out + ": something else is there; choose another --out");
  }
  const std::set<std::string> listed = site ? listed_files(out) : std::set<std::string>();
  for_each_below(out, [&](const std::string& path, mode_t) {
    const std::string place = path.substr(out.size() + 1);
    if (belongs(place, listed)) return;
    throw IoError("cannot replace the site in " + out + ": " + place + " is no part of it; choose another --out");
  });
}

/// A place for the single file: nothing there, or another one of these.
void check_single(const std::string& file) {
  std::error_code error;
  if (!fs::exists(file, error)) return;
  if (fs::is_regular_file(file, error) && read_part(file, 0, 100).find("<html data-site=") != std::string::npos) return;
  throw IoError("cannot write the site to " + file + ": something else is there; choose another --single");
}

void check_page(const std::string& page) {
  std::error_code error;
  std::vector<const char*> names(std::begin(kPageFiles), std::end(kPageFiles));
  names.push_back(kSinglePage);
  for (const char* name : names) {
    if (page.empty() || !fs::exists(page + "/" + name, error)) {
      throw IoError(page.empty() ? "the page for the browser is not built; use './run site', which builds it"
                                 : "--page " + page + " has no " + name + "; use './run site', which builds it");
    }
  }
}

/// A reversal model with attention, which learns in seconds, with checkpoints of the way there.
std::string train_small(const std::string& folder) {
  const TaskSpec& spec = find_task("reverse");
  Settings settings = spec.settings();
  for (const auto& [name, value] : {std::pair("max-length", "12"),
                                    {"train-size", "4000"},
                                    {"validation-size", "200"},
                                    {"epochs", "10"},
                                    {"eval-every", "50"},
                                    {"checkpoint-every", "50"},
                                    {"keep", "50"}})
    settings.set(name, value);
  const std::string path = folder + "/reverse";
  OpenedRun run = open_or_create(path, spec, settings);
  const auto began = std::chrono::steady_clock::now();
  ConsoleObserver console("reverse", "no run was named: a small reversal model is trained for the site", stdout,
                          Detail::brief);
  const SessionResult result = run_session(run.folder, *run.task, &console);
  if (result.training.interrupted) throw Error("stopped: nothing was written");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("trained in %s s\n", format_number(took.count(), 1).c_str());
  return path;
}

std::string file_of(const SiteRun& run) { return "runs/" + run.id + ".tar"; }

/// The list of the runs, as the page reads it.
std::string index_of(const std::vector<SiteRun>& runs) {
  Json list = Json::array();
  for (const SiteRun& run : runs) {
    list.push_back({{"id", run.id}, {"file", file_of(run)}, {"bytes", run.archive.size()}});
  }
  return json_text({{"qkv", QKV_VERSION}, {"runs", list}}) + "\n";
}

void say_sizes(const std::string& where, int64_t page_bytes, const std::vector<SiteRun>& runs) {
  std::printf("%s: page %s", where.c_str(), megabytes(page_bytes).c_str());
  for (const SiteRun& run : runs) {
    std::printf(", %s %s", run.id.c_str(), megabytes(static_cast<int64_t>(run.archive.size())).c_str());
  }
  std::printf("\n");
  for (const SiteRun& run : runs) {
    if (!run.recorded.empty()) std::printf("%s is recorded: %s\n", run.id.c_str(), run.recorded.c_str());
  }
}

void write_site(const SiteArguments& a, const std::vector<SiteRun>& runs) {
  AtomicFolder folder(a.out);
  int64_t page_bytes = 0;
  for (const char* name : kPageFiles) {
    const Bytes bytes = read_file(a.page + "/" + name);
    page_bytes += static_cast<int64_t>(bytes.size());
    folder.write(name, bytes);
  }
  make_folders(folder.file("runs"));
  for (const SiteRun& run : runs) folder.write(file_of(run), run.archive);
  folder.write(kIndex, bytes_of(index_of(runs)));
  folder.commit();
  say_sizes(a.out, page_bytes, runs);
  std::printf("Any web server shows it, for example: python3 -m http.server --directory %s\n", a.out.c_str());
}

/// The page of one file with the runs inside: elements that no browser runs, named as the files of a folder are.
void write_single(const SiteArguments& a, const std::vector<SiteRun>& runs) {
  const std::string page = read_text(a.page + "/" + kSinglePage);
  const size_t mark = page.rfind(kRunsMark);
  if (mark == std::string::npos) throw IoError(a.page + "/" + kSinglePage + " has no place for runs");
  const auto inside = [](const std::string& name, std::span<const std::byte> bytes) {
    return "<script type=\"text/plain\" data-file=\"" + name + "\">" + encode_base64(bytes) + "</script>\n";
  };
  AtomicFile file(a.single);
  file.write(std::string_view(page).substr(0, mark));
  file.write(inside(kIndex, bytes_of(index_of(runs))));
  for (const SiteRun& run : runs) file.write(inside(file_of(run), run.archive));
  file.write(std::string_view(page).substr(mark + std::string_view(kRunsMark).size()));
  file.commit();
  say_sizes(a.single, static_cast<int64_t>(page.size()), runs);
  std::printf("A browser opens it by a double click.\n");
}

}  // namespace

int run_site(const Arguments& arguments) {
  Cli cli("The page as static files or one file: lab, runs and all, computed in the visitor's browser.", "site");
  SiteArguments a;
  cli.texts("RUN", a.runs, "DIR", "run folders to show; without any, a small reversal model is trained");
  cli.text("--out", a.out, "DIR", "where the site is written; a site that is there is replaced");
  cli.text("--single", a.single, "FILE.html",
           "write it as one file instead, which needs no web server; one that is there is replaced");
  cli.text("--inputs", a.inputs, "FILE",
           "for runs that are recorded (SentencePiece tokenizers, more than 50 MB of weights): record these lines too");
  cli.flag("--large", a.large, "allow more than 50 MB of runs, and carry large models instead of recordings");
  cli.text("--page", a.page, "DIR", "the page built for the browser [what './run site' builds]");
  cli.footer(kFooter);
  if (!cli.parse(arguments)) return 0;
  if (!a.out.empty() && !a.single.empty()) throw ConfigError("--out and --single cannot be combined");
  if (a.out.empty() && a.single.empty())
    throw ConfigError("say where the site goes: --out DIR or --single FILE.html; see 'qkv site --help'");
  check_page(a.page);
  a.single.empty() ? check_place(a.out) : check_single(a.single);
  std::string& place = a.single.empty() ? a.out : a.single;
  place = fs::absolute(place + "/").lexically_normal().parent_path().string();
  make_folders(fs::path(place).parent_path().string());
  AtomicFolder work(place + ".run");  // never committed: it goes when the site is written
  if (a.runs.empty()) a.runs.push_back(train_small(work.path()));
  const std::vector<SiteRun> runs = pack_for_site(a.runs, {a.inputs, a.large, work.path()});
  int64_t bytes = 0;
  for (const SiteRun& run : runs) bytes += static_cast<int64_t>(run.archive.size());
  if (bytes > kMostBytes && !a.large) {
    throw ConfigError("the runs take " + megabytes(bytes) + ", more than the 50 MB a visitor is expected to load; " +
                      "name fewer, or allow it with --large");
  }
  a.single.empty() ? write_site(a, runs) : write_single(a, runs);
  return 0;
}

}  // namespace qkv::app
