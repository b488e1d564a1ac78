// /openapi/v2 and /openapi/v3: documents built on demand and cached.
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

// A cache of documents. Those of built-in groups never change; those of custom groups are valid until their resources
// change. Thread-safe.
class OpenApiDocuments {
 public:
  struct Document {
    std::string json;
    std::string hash;
  };
  using DocumentRef = std::shared_ptr<const Document>;

  // Null if the path ("apis/apps/v1") does not exist.
  DocumentRef v3(const resource::Registry::Snapshot& registry, const Gates& gates, std::string_view path,
                 const aggregate::RemoteApis* remotes);
  // Includes the group versions of `remotes`, which may be null.
  std::string v3_index(const resource::Registry::Snapshot& registry, const Gates& gates,
                       const aggregate::RemoteApis* remotes);
  // `version` identifies the state of registry and remotes.
  DocumentRef v2(const resource::Registry::Snapshot& registry, uint64_t version, const Gates& gates,
                 const aggregate::RemoteApis* remotes);
  std::string v2_protobuf(const resource::Registry::Snapshot& registry, const Gates& gates,
                          const aggregate::RemoteApis* remotes);

 private:
  // Documents are large and requested in bursts, so only the few most recently used are kept.
  static constexpr size_t kKeptDocuments = 6;
  struct Kept {
    DocumentRef document;
    uint64_t version = 0;  // Version of its input; 0 for a built-in group, which never changes.
    uint64_t used = 0;
  };
  DocumentRef find(std::string_view path, uint64_t version);  // Null if not cached.
  DocumentRef make_v3(std::span<const openapi::Served> served, const Gates& gates, std::string_view path,
                      uint64_t version);
  // For a server that only has v2; null if its document cannot be decoded.
  DocumentRef converted(const aggregate::RemoteApi& remote);
  void keep(std::string path, DocumentRef document, uint64_t version);

  std::mutex mutex_;
  uint64_t uses_ = 0;
  std::map<std::string, Kept, std::less<>> kept_;
  struct Hash {
    uint64_t version = 0;
    std::string hash;
  };
  std::map<std::string, Hash, std::less<>> hashes_;  // Of all v3 documents, cached or not; needed for the index.
};

}  // namespace holdfast::verbs
