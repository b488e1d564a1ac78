// Pages for debugging a server: /statusz and /flagz, in kube-apiserver's layout.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/arena.h"
#include "base/clock.h"
#include "value/value.h"

namespace holdfast::server {

// The content of /statusz, for both of its formats.
struct Statusz {
  UnixTime started, now;

  std::string text() const;
  // The config.k8s.io object in this version.
  Value object(Arena& arena, std::string_view version) const;
};

// The content of /flagz: flags and their values.
struct Flagz {
  std::span<const std::pair<std::string, std::string>> flags;

  std::string text() const;
  Value object(Arena& arena, std::string_view version) const;
};

}  // namespace holdfast::server
