// The codec of a built-in kind for a server with its own default IP family.
#pragma once

#include <memory>
#include <string_view>

#include "resource/object_codec.h"

namespace holdfast::resource {

// `default_family` ("IPv4", "IPv6") is that of headless Services that were stored before Services had families.
std::shared_ptr<const ObjectCodec> make_builtin_codec(const types::Resource& stored, const Gates& gates,
                                                      std::string_view default_family);

}  // namespace holdfast::resource
