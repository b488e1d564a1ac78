// Cases of the kinds' behaviour, as tables: each is one object that is created, and perhaps updated.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kinds/kinds.h"

namespace holdfast::kinds {

struct Case {
  const char* name;
  const char* group = "";
  const char* plural = "";
  const char* object = "{}";     // Completed with apiVersion, kind, name and namespace if they are missing.
  const char* stored = nullptr;  // Merged into the stored object, which need not be valid by the current rules.
  const char* update = nullptr;  // A merge patch of the created object, written as an update.
  Endpoint endpoint = Endpoint::Main;
  const char* want = nullptr;   // Members that the result must have.
  const char* error = nullptr;  // The message of the error, after `Kind "x" is invalid: `.
};

inline void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

// Its test is in kinds_test.cc; the tables are in the files of their families.
class KindTest : public testing::TestWithParam<Case> {};

inline std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

// Parts of several objects.
#define POD_SPEC R"("spec":{"containers":[{"name":"c","image":"i:1"}]})"
#define TEMPLATE R"("template":{"metadata":{"labels":{"a":"b"}},)" POD_SPEC "}"
#define SELECTED R"("selector":{"matchLabels":{"a":"b"}},)" TEMPLATE

}  // namespace holdfast::kinds
