// Pages for debugging a server: /statusz and /flagz, in kube-apiserver's layout.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/arena.h"
#include "base/clock.h"
#include "value/value.h"

namespace holdfast::server {

// What /statusz says, in both of its forms.
struct Statusz {
  UnixTime started, now;

  std::string text() const;
  // The object of config.k8s.io in this version.
  Value object(Arena& arena, std::string_view version) const;
};

// What /flagz says: flags and their values.
struct Flagz {
  std::span<const std::pair<std::string, std::string>> flags;

  std::string text() const;
  Value object(Arena& arena, std::string_view version) const;
};

}  // namespace holdfast::server
