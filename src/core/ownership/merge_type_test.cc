// The engine treats every built-in kind as Kubernetes does: tests/vectors/ownership/builtin_schema.json is what its
// converter (kube-openapi schemaconv) produces from the OpenAPI v3 documents served by kube-apiserver v1.36.
#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "codec/json.h"
#include "ownership/merge_type.h"
#include "ownership/smd_schema.h"

namespace holdfast::ownership {
namespace {

class Comparer {
 public:
  void same(const MergeType& ours, const MergeType& theirs, const std::string& path) {
    if (!seen_.insert({&ours, &theirs}).second) return;
    auto check = [&](bool ok, const char* what) {
      if (!ok) differences.insert(path + ": " + what);
    };
    check(ours.offers == theirs.offers, "offers other alternatives");
    if (ours.offers != theirs.offers) return;
    if (ours.offers & MergeType::kScalar) check(ours.scalar == theirs.scalar, "another kind of scalar");
    if (ours.offers & MergeType::kList) {
      check(ours.atomic_list == theirs.atomic_list, "lists atomic or not");
      check(std::ranges::equal(ours.keys, theirs.keys), "other keys");
      if (ours.keys.size() == theirs.keys.size()) {
        for (size_t i = 0; i < ours.keys.size(); ++i) {
          const Value *a = ours.key_defaults[i], *b = theirs.key_defaults[i];
          check(a == nullptr || b == nullptr ? a == b : equal(*a, *b, Numbers::ByValue), "another default of a key");
        }
      }
      same(*ours.item, *theirs.item, path + "[]");
    }
    if (ours.offers & MergeType::kMap) {
      check(ours.atomic_map == theirs.atomic_map, "maps atomic or not");
      check(ours.is_deduced_map() == theirs.is_deduced_map(), "deduced or not");
      check((ours.element == nullptr) == (theirs.element == nullptr), "undeclared members allowed or not");
      for (const MergeField& field : theirs.fields) {
        const MergeField* mine = ours.find(field.name);
        if (mine == nullptr) {
          differences.insert(path + "." + std::string(field.name) + ": missing");
        } else {
          same(*mine->type, *field.type, path + "." + std::string(field.name));
        }
      }
      for (const MergeField& field : ours.fields) {
        if (theirs.find(field.name) == nullptr)
          differences.insert(path + "." + std::string(field.name) + ": unknown there");
      }
      if (ours.element != nullptr && theirs.element != nullptr) same(*ours.element, *theirs.element, path + "{}");
    }
  }
  std::set<std::string> differences;

 private:
  std::set<std::pair<const MergeType*, const MergeType*>> seen_;
};

TEST(MergeTypes, BuiltInKindsMatchKubernetes) {
  const Result<std::string> text = read_file(HOLDFAST_SOURCE_DIR "/tests/vectors/ownership/builtin_schema.json");
  ASSERT_TRUE(text.ok());
  Arena arena;
  const Result<Value> root = codec::decode_json(arena, *text);
  ASSERT_TRUE(root.ok());
  SchemaLoader loader(arena, *root);
  MergeTypes theirs;
  Comparer comparer;
  std::set<std::string> found;
  for (const Value& entry : root->items_at("gvks")) {
    const std::string_view group = entry.text_at("gvk", "group"), version = entry.text_at("gvk", "version"),
                           kind = entry.text_at("gvk", "kind");
    const types::Resource* resource = types::find_kind(group, version, kind);
    if (resource == nullptr || resource->type == nullptr) continue;
    const std::string title = std::string(group) + "/" + std::string(version) + "." + std::string(kind);
    if (!found.insert(title).second) continue;
    comparer.same(builtin_merge_types().of(*resource->type), theirs.of(*loader.named(entry.text_at("name"))), title);
  }
  std::string all;
  for (const std::string& difference : comparer.differences) all += difference + "\n";
  EXPECT_EQ(all, "");
  EXPECT_GT(found.size(), 50u);
}

}  // namespace
}  // namespace holdfast::ownership
