// What changed between two trees, for people: some refusals show it. Private to the room.
#pragma once

#include <string>

#include "value/value.h"

namespace holdfast::kinds {

// A unified-diff hunk of the two as indented JSON, three lines of context.
std::string difference(const Value& before, const Value& after);

}  // namespace holdfast::kinds
