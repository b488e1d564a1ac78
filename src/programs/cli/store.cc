// holdfast store copy|check|backup|restore|list|delete: copies, checks and repairs the data of a server.
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <future>
#include <map>

#include "base/arena.h"
#include "base/files.h"
#include "base/strings.h"
#include "cache/cache.h"
#include "cli/commands.h"
#include "cli/key_archive.h"
#include "cli/terminal.h"
#include "codec/codec.h"
#include "codec/visible.h"
#include "resource/outdated.h"
#include "resource/resource.h"
#include "store/embedded.h"
#include "store/store.h"

namespace holdfast::cli {
namespace {

struct StoreFlags {
  std::string from, to, data_dir, file, prefix;
  std::vector<std::string> keys;
  std::string etcd_prefix = "/registry";
  std::string etcd_cafile, etcd_certfile, etcd_keyfile;
  std::string cert_dir, passphrase_file;
  bool without_keys = false;
};

bool is_url(std::string_view text) { return text.starts_with("http://") || text.starts_with("https://"); }

// A server's data directory, an existing backup file, or the URLs of an etcd.
store::Location location_of(const std::string& text, const StoreFlags& flags) {
  if (is_url(text)) {
    store::EtcdOptions etcd;
    for (const std::string_view url : split(text, ',')) {
      if (!url.empty()) etcd.endpoints.emplace_back(url);
    }
    etcd.ca_file = flags.etcd_cafile;
    etcd.cert_file = flags.etcd_certfile;
    etcd.key_file = flags.etcd_keyfile;
    return etcd;
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(text, ignored)) return store::BackupFile{text};
  store::RocksOptions rocks;
  rocks.directory = text + "/store";
  return rocks;
}

// An etcd may be shared with others; an embedded store and its backups contain only our keys.
std::string copied_prefix(const StoreFlags& flags, bool etcd) { return etcd ? flags.etcd_prefix + "/" : "/"; }

bool is_etcd(const store::Location& location) { return std::holds_alternative<store::EtcdOptions>(location); }

// Progress on a single line that is rewritten; prints nothing if stderr is not a terminal.
class ProgressLine {
 public:
  explicit ProgressLine(const char* verb) : verb_(verb), shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() { clear(); }

  void show(const store::Moved& so_far) {
    if (!shown_) return;
    fprintf(stderr, "\r\033[K%s %llu objects, %.1f MB", verb_, static_cast<unsigned long long>(so_far.items),
            static_cast<double>(so_far.bytes) / 1e6);
    fflush(stderr);
    used_ = true;
  }
  void clear() {
    if (used_) fputs("\r\033[K", stderr);
    used_ = false;
  }

 private:
  const char* const verb_;
  const bool shown_;
  bool used_ = false;
};

std::string summary(const store::Moved& moved) {
  char text[128];
  snprintf(text, sizeof text, "%llu objects, %.1f MB, at revision %llu", static_cast<unsigned long long>(moved.items),
           static_cast<double>(moved.bytes) / 1e6, static_cast<unsigned long long>(moved.revision.value));
  return text;
}

// Runs copy(options) and reports on it.
template <class Copy>
int report_copy(const char* verb, const std::string& target, Copy copy, store::CopyOptions options = {}) {
  ProgressLine line(verb);
  options.progress = [&line](const store::Moved& so_far) { line.show(so_far); };
  const store::StoreResult<store::Moved> moved = copy(options);
  line.clear();
  if (!moved) return fail(moved.error().message.c_str());
  print(target, ": ", summary(*moved), "\n");
  return 0;
}

int move(const store::Location& from, const store::Location& to, const StoreFlags& flags, const char* verb,
         const std::string& target) {
  store::CopyOptions options;
  options.prefix = copied_prefix(flags, is_etcd(from) || is_etcd(to));
  if (is_etcd(to)) {
    options.convert = [](std::string_view key, std::string_view value) -> store::StoreResult<std::string> {
      Result<std::string> converted = cache::kubernetes_value(value);
      if (converted) return std::move(*converted);
      return store::StoreError{store::ErrorKind::Corrupt, std::string(key) + ": " + converted.error().message};
    };
  }
  const auto copy = [&](const store::CopyOptions& chosen) { return store::copy_store(from, to, chosen); };
  return report_copy(verb, target, copy, std::move(options));
}

std::string pki_of(const StoreFlags& flags) {
  return flags.cert_dir.empty() ? flags.data_dir + "/pki" : flags.cert_dir;
}

Result<std::string> passphrase_of(const StoreFlags& flags) {
  Result<std::string> text = read_file(flags.passphrase_file);
  if (!text) return text;
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->empty()) return bad_request(flags.passphrase_file + " is empty");
  return text;
}

int backup(const StoreFlags& flags) {
  const store::BackupFile file{flags.file};
  std::string attachment;
  size_t keys = 0;
  if (!flags.without_keys) {
    const std::string pki = pki_of(flags);
    Result<KeyFiles> files = read_key_files(pki);
    if (!files) return fail(files.error().message.c_str());
    keys = files->size();
    if (files->empty() && !flags.passphrase_file.empty()) {
      return fail((pki + " holds no keys: give --cert-dir if the server has one, or --without-keys").c_str());
    }
    if (!files->empty() && flags.passphrase_file.empty()) {
      return fail(("give --passphrase-file, to encrypt the keys in " + pki +
                   ", or --without-keys: a server restored without them makes new ones, and trusts neither the "
                   "certificates nor the service account tokens that exist")
                      .c_str());
    }
    if (!files->empty()) {
      const Result<std::string> passphrase = passphrase_of(flags);
      if (!passphrase) return fail(passphrase.error().message.c_str());
      Result<std::string> sealed = seal_keys(*files, *passphrase);
      if (!sealed) return fail(sealed.error().message.c_str());
      attachment = std::move(*sealed);
    }
  }
  const store::RocksOptions embedded{.directory = flags.data_dir + "/store"};
  const int code = report_copy("backed up", flags.file, [&](const store::CopyOptions& options) {
    return store::back_up(embedded, file, std::move(attachment), options);
  });
  if (code == 0 && keys > 0) print(flags.file, ": ", std::to_string(keys), " keys and certificates, encrypted\n");
  return code;
}

int restore(const StoreFlags& flags) {
  const store::BackupFile file{flags.file};
  store::StoreResult<std::string> attached = store::read_attachment(file);
  if (!attached) return fail(attached.error().message.c_str());
  KeyFiles keys;
  if (!flags.passphrase_file.empty()) {
    if (attached->empty()) return fail((flags.file + " holds no keys").c_str());
    const Result<std::string> passphrase = passphrase_of(flags);
    if (!passphrase) return fail(passphrase.error().message.c_str());
    Result<KeyFiles> opened = open_keys(*attached, *passphrase);
    if (!opened) return fail((flags.file + ": " + opened.error().message).c_str());
    keys = std::move(*opened);
  } else if (!attached->empty() && !flags.without_keys) {
    return fail(
        (flags.file +
         " holds the keys of the server: give --passphrase-file, or --without-keys, to restore only the objects")
            .c_str());
  }
  const std::string pki = pki_of(flags);
  std::error_code ignored;
  if (!keys.empty() && std::filesystem::exists(pki, ignored) && !std::filesystem::is_empty(pki, ignored)) {
    return fail((pki + " is not empty: the keys in it are not overwritten; move it away first").c_str());
  }
  const int code =
      move(file, store::RocksOptions{.directory = flags.data_dir + "/store"}, flags, "restored", flags.data_dir);
  if (code != 0 || keys.empty()) return code;
  if (Result<Unit> written = write_key_files(pki, keys); !written) return fail(written.error().message.c_str());
  print(pki, ": ", std::to_string(keys.size()), " keys and certificates\n");
  return 0;
}

// How a backup treats the keys of the server.
void add_key_flags(CLI::App& c, StoreFlags& flags) {
  c.add_option("--cert-dir", flags.cert_dir, "Directory of keys and certificates; DATA-DIR/pki if not set");
  CLI::Option* passphrase =
      c.add_option("--passphrase-file", flags.passphrase_file, "File with the passphrase that encrypts the keys");
  c.add_flag("--without-keys", flags.without_keys, "Leave out the keys and certificates")->excludes(passphrase);
}

int check(const StoreFlags& flags) {
  ProgressLine line("checked");
  const store::Location location = location_of(flags.from, flags);
  store::CheckOptions options;
  options.prefix = copied_prefix(flags, is_etcd(location));
  std::map<std::string, uint64_t> outdated;  // Version and kind -> number of objects.
  options.verify = [&outdated, check = resource::make_stored_check(flags.etcd_prefix)](std::string_view key,
                                                                                       std::string_view value) {
    if (const std::string version = resource::outdated_version(value); !version.empty()) ++outdated[version];
    return check(key, value);
  };
  options.progress = [&line](const store::Moved& so_far) { line.show(so_far); };
  store::StoreResult<store::CheckReport> report = store::check_store(location, options);
  line.clear();
  if (!report) return fail(report.error().message.c_str());
  for (const store::Problem& problem : report->problems) {
    print(problem.where, ": ", problem.what, "\n");
  }
  for (const auto& [version, count] : outdated) {
    print(version, ": ", std::to_string(count),
          " stored in this version, which is no longer served; each is stored in today's when it is written\n");
  }
  const uint64_t problems = report->problems.size() + report->more_problems;
  print(flags.from, ": ", summary(report->checked), ": ",
        problems == 0 ? "nothing is damaged" : (std::to_string(problems) + " problems"), "\n");
  return problems == 0 ? 0 : 1;
}

// Calls start(callback) and blocks.
template <class T, class Start>
store::StoreResult<T> wait_for(Start start) {
  std::promise<store::StoreResult<T>> promise;
  std::future<store::StoreResult<T>> answer = promise.get_future();
  start([&promise](store::StoreResult<T> result) { promise.set_value(std::move(result)); });
  return answer.get();
}

// Opens the store of a server that is not running. Nothing is created.
store::StoreResult<std::unique_ptr<store::Store>> open_offline(const std::string& data_dir) {
  const std::string directory = data_dir + "/store";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(directory + "/CURRENT", ignored)) {
    return store::StoreError{store::ErrorKind::Invalid, directory + ": there is no store"};
  }
  // Files written by another user, such as root, would lock the server out of its own data.
  Result<Unit> own = make_private_directory(directory);
  if (!own) return store::StoreError{store::ErrorKind::Invalid, own.error().message};
  return store::open_rocks({.directory = directory});
}

// Keys are names given by clients: as JSON strings, which `delete` accepts, if a terminal would not show them.
std::string shown_key(std::string_view key) {
  if (!key.starts_with('"') && visible_line(key) == key) return std::string(key);
  return codec::visible_json(codec::encode_json_string(key));
}

Result<std::string> parse_key(const std::string& shown) {
  if (!shown.starts_with('"')) return shown;
  Arena arena;
  Result<Value> text = codec::decode_json(arena, shown);
  if (!text) return text.take_error();
  if (!text->is_string()) return bad_request("not a key: " + shown);
  return std::string(text->as_string());
}

int list_keys(const StoreFlags& flags) {
  // A value has up to 1.5 MB.
  constexpr uint64_t kPageItems = 50;
  auto store = open_offline(flags.data_dir);
  if (!store) return fail(store.error().message.c_str());
  store::RangeRequest request{.prefix = flags.prefix, .limit = kPageItems};
  print("  REVISION       BYTES  KEY\n");
  while (true) {
    auto page = wait_for<store::Page>([&](auto done) { (*store)->range(request, std::move(done)); });
    if (!page) return fail(page.error().message.c_str());
    for (const store::KeyValue& item : page->items) {
      char columns[64];
      snprintf(columns, sizeof columns, "%10llu  %10zu  ", static_cast<unsigned long long>(item.modified.value),
               item.value->size());
      print(columns, shown_key(item.key), "\n");
    }
    if (!page->more || page->items.empty()) break;
    request.from = page->items.back().key + '\0';
    request.at = page->revision;
  }
  if (fflush(stdout) != 0) return fail("standard output cannot be written");
  return 0;
}

int delete_keys(const StoreFlags& flags) {
  auto store = open_offline(flags.data_dir);
  if (!store) return fail(store.error().message.c_str());
  for (const std::string& shown : flags.keys) {
    Result<std::string> key = parse_key(shown);
    if (!key) return fail(key.error().message.c_str());
    auto got = wait_for<store::Got>([&](auto done) { (*store)->get(*key, std::move(done)); });
    if (!got) return fail(got.error().message.c_str());
    if (!got->item) return fail((flags.data_dir + ": there is no key " + shown_key(*key)).c_str());
    auto written = wait_for<store::WriteResult>(
        [&](auto done) { (*store)->write({store::remove(*key, got->item->modified)}, std::move(done)); });
    if (!written) return fail(written.error().message.c_str());
    const auto* committed = std::get_if<store::Committed>(&*written);
    if (committed == nullptr) return fail((shown_key(*key) + ": changed meanwhile").c_str());
    print("deleted ", shown_key(*key), " at revision ", std::to_string(committed->revision.value), "\n");
  }
  return 0;
}

void add_etcd_flags(CLI::App& c, StoreFlags& flags) {
  c.add_option("--etcd-prefix", flags.etcd_prefix, "Prefix of all keys, as given to the server")->capture_default_str();
  c.add_option("--etcd-cafile", flags.etcd_cafile, "Certificate Authority file used to secure etcd communication");
  c.add_option("--etcd-certfile", flags.etcd_certfile, "Certificate file used to secure etcd communication");
  c.add_option("--etcd-keyfile", flags.etcd_keyfile, "Key file used to secure etcd communication");
}

}  // namespace

Command add_store(CLI::App& app) {
  auto flags = std::make_shared<StoreFlags>();
  CLI::App* c = app.add_subcommand("store", "Copy, check, back up, restore and repair the data of a server");
  c->require_subcommand(1);

  CLI::App* copy = c->add_subcommand("copy", "Copy every object to an empty store; the source may be in use");
  copy->add_option("--from", flags->from, "Data directory of a server, backup file, or etcd URLs, comma separated")
      ->required();
  copy->add_option("--to", flags->to, "New data directory, or URLs of an empty etcd")->required();
  add_etcd_flags(*copy, *flags);
  copy->footer(
      "\nA data directory keeps every resourceVersion; an etcd assigns new, greater ones (it has to count up to them, "
      "which takes about a minute for a million), so stop the server before moving there."
      "\nKeys and certificates (DIR/pki) are not part of the store.");

  CLI::App* checked =
      c->add_subcommand("check", "Read everything and report what is damaged; exits with 1 if anything is");
  checked->add_option("location", flags->from, "Data directory of a server, backup file, or etcd URLs, comma separated")
      ->required();
  add_etcd_flags(*checked, *flags);

  CLI::App* backup_command = c->add_subcommand(
      "backup",
      "Write a snapshot of the embedded store, with the keys of the server, to a file; the store may be in use");
  backup_command->add_option("--data-dir", flags->data_dir, "Data directory of the server")->required();
  backup_command->add_option("file", flags->file, "Backup file to create; must not exist")->required();
  add_key_flags(*backup_command, *flags);
  backup_command->footer(
      "\nThe file holds all Secrets as they are stored: keep it like the data directory. Only the keys and "
      "certificates "
      "are encrypted.");

  CLI::App* restore_command = c->add_subcommand("restore", "Create an embedded store from a backup");
  restore_command->add_option("--data-dir", flags->data_dir, "Data directory; must not contain a store")->required();
  restore_command->add_option("file", flags->file, "Backup file")->required();
  add_key_flags(*restore_command, *flags);

  CLI::App* list = c->add_subcommand("list", "List the keys of an embedded store; the server must not be running");
  list->add_option("--data-dir", flags->data_dir, "Data directory of the server")->required();
  list->add_option("prefix", flags->prefix, "Only keys that start with this: /registry/configmaps/default/");
  list->footer(
      "\nPrints the revision, the size of the value and the key of each object. A key with characters that a terminal "
      "does not show is printed as a JSON string.");

  CLI::App* deleted =
      c->add_subcommand("delete", "Delete objects from an embedded store; the server must not be running");
  deleted->add_option("--data-dir", flags->data_dir, "Data directory of the server")->required();
  deleted->add_option("key", flags->keys, "Keys as printed by `holdfast store list`")->required();
  deleted->footer(
      "\nFor an object that keeps the server from starting or working; use the API for any other. Finalizers are "
      "ignored, and nothing that belongs to the object is deleted with it. Make a backup first (`holdfast store "
      "backup`), and run this as the user that runs the server.");

  for (CLI::App* command : {copy, checked, backup_command, restore_command, list}) {
    for (CLI::Option* option : command->get_options()) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  return [=] {
    umask(0077);
    if (copy->parsed()) {
      return move(location_of(flags->from, *flags), location_of(flags->to, *flags), *flags, "copied", flags->to);
    }
    if (checked->parsed()) return check(*flags);
    if (list->parsed()) return list_keys(*flags);
    if (deleted->parsed()) return delete_keys(*flags);
    if (backup_command->parsed()) return backup(*flags);
    return restore(*flags);
  };
}

}  // namespace holdfast::cli
