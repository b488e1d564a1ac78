// apiVersion, as it stands in every object: "v1" in the core group, otherwise "group/version".
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

struct GroupVersion {
  std::string_view group, version;  // The group is empty for the core group.
};

inline GroupVersion split_api_version(std::string_view api_version) {
  const size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

inline std::string api_version_of(std::string_view group, std::string_view version) {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

// A kind as Go prints it: "apps/v1, Kind=Deployment", "/v1, Kind=Pod".
inline std::string go_kind_text(std::string_view group, std::string_view version, std::string_view kind) {
  return std::string(group) + "/" + std::string(version) + ", Kind=" + std::string(kind);
}
inline std::string go_kind_text(std::string_view api_version, std::string_view kind) {
  const auto [group, version] = split_api_version(api_version);
  return go_kind_text(group, version, kind);
}

// Where a version is served: "/api/v1", "/apis/group/version".
inline std::string api_path(std::string_view group, std::string_view version) {
  return (group.empty() ? "/api/" : "/apis/") + api_version_of(group, version);
}

}  // namespace holdfast
