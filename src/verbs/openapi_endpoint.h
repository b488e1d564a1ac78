// /openapi/v2 and /openapi/v3: documents made on demand, and kept for a while.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "aggregate/aggregate.h"
#include "call/call.h"
#include "openapi/openapi.h"

namespace holdfast::verbs {

// The documents made so far. Those of built-in groups never change; those of custom ones live as long as what they are
// made of. Thread-safe.
class OpenApiDocuments {
 public:
  struct Document {
    std::string json;
    std::string hash;
  };
  using DocumentRef = std::shared_ptr<const Document>;

  // Null when there is no such path ("apis/apps/v1").
  DocumentRef v3(const resource::Registry::Snapshot& registry, const Gates& gates, std::string_view path,
                 const aggregate::RemoteApis* remotes);
  // `remotes` (null: there are none) with their group versions.
  std::string v3_index(const resource::Registry::Snapshot& registry, const Gates& gates,
                       const aggregate::RemoteApis* remotes);
  // `version` identifies a state of registry and remotes.
  DocumentRef v2(const resource::Registry::Snapshot& registry, uint64_t version, const Gates& gates,
                 const aggregate::RemoteApis* remotes);
  std::string v2_protobuf(const resource::Registry::Snapshot& registry, const Gates& gates,
                          const aggregate::RemoteApis* remotes);

 private:
  // Large, and asked for in bursts: only the few that were used last are kept.
  static constexpr size_t kKeptDocuments = 6;
  struct Kept {
    DocumentRef document;
    uint64_t version = 0;  // Of what it was made of; 0: of a built-in group, which never changes.
    uint64_t used = 0;
  };
  DocumentRef find(std::string_view path, uint64_t version);  // Null: not kept.
  DocumentRef make_v3(std::span<const openapi::Served> served, const Gates& gates, std::string_view path,
                      uint64_t version);
  // Of a server that has v2 alone; null when that cannot be read.
  DocumentRef converted(const aggregate::RemoteApi& remote);
  void keep(std::string path, DocumentRef document, uint64_t version);

  std::mutex mutex_;
  uint64_t uses_ = 0;
  std::map<std::string, Kept, std::less<>> kept_;
  struct Hash {
    uint64_t version = 0;
    std::string hash;
  };
  std::map<std::string, Hash, std::less<>> hashes_;  // Of v3 documents, kept or not: the index needs all of them.
};

}  // namespace holdfast::verbs
