// /openapi/v2 and /openapi/v3: documents made when somebody asks, and kept for a while.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/call.h"

namespace holdfast::api {

// The documents made so far. Those of built-in groups never change; those of custom ones live as long as the registry's
// version. Thread-safe.
class OpenApiDocuments {
 public:
  struct Document {
    std::string json;
    std::string hash;
  };
  using DocumentRef = std::shared_ptr<const Document>;

  // Null when there is no such path ("apis/apps/v1").
  DocumentRef v3(const Registry::Snapshot& registry, uint64_t version, const Gates& gates, std::string_view path);
  std::string v3_index(const Registry::Snapshot& registry, uint64_t version, const Gates& gates);
  DocumentRef v2(const Registry::Snapshot& registry, uint64_t version, const Gates& gates);
  std::string v2_protobuf(const Registry::Snapshot& registry, const Gates& gates);

 private:
  // Large, and asked for in bursts: only the few that were used last are kept.
  static constexpr size_t kKeptDocuments = 6;
  struct Kept {
    DocumentRef document;
    uint64_t version = 0;  // 0: of a built-in group, for ever.
    uint64_t used = 0;
  };
  void keep(std::string path, DocumentRef document, uint64_t version);

  std::mutex mutex_;
  uint64_t uses_ = 0;
  std::map<std::string, Kept, std::less<>> kept_;
  std::map<std::string, std::string, std::less<>> builtin_hashes_;
};

Task<void> serve_openapi(Call& call);

}  // namespace holdfast::api
