// Pages for who debugs a server: /statusz and /flagz, in kube-apiserver's layout.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/clock.h"

namespace holdfast::server {

std::string statusz_page(UnixTime started, UnixTime now);
// A flag and its value in each line.
std::string flagz_page(std::span<const std::pair<std::string, std::string>> flags);

}  // namespace holdfast::server
