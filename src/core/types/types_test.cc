#include "types/types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "types/descriptions.h"

namespace holdfast::types {
namespace {

using testing::ElementsAre;

std::vector<std::string_view> member_names(const Type& type) {
  std::vector<std::string_view> names;
  for (const Field* member : type.members) names.push_back(member->name);
  return names;
}

// And the beta version that it serves on request, and ownership.holdfast.dev.
TEST(Catalog, ContainsEverythingKubernetesServes) {
  std::set<std::pair<std::string_view, std::string_view>> group_versions;
  for (const Resource& resource : builtin_resources()) group_versions.insert({resource.group, resource.version});
  EXPECT_EQ(group_versions.size(), 24u);
  EXPECT_EQ(builtin_resources().size(), 74u);
  EXPECT_EQ(builtin_types().size(), 813u + 36u);  // 36 of versions that are only read from the store.
}

TEST(Catalog, FindsEveryResourceByPluralAndByKind) {
  for (const Resource& resource : builtin_resources()) {
    EXPECT_EQ(find_resource(resource.group, resource.version, resource.plural), &resource);
    EXPECT_EQ(find_kind(resource.group, resource.version, resource.kind), &resource);
    ASSERT_NE(resource.type, nullptr) << resource.plural;
    EXPECT_FALSE(resource.verbs.empty());
  }
  EXPECT_EQ(find_resource("", "v1", "podz"), nullptr);
  EXPECT_EQ(find_resource("apps", "v1", "pods"), nullptr);
  EXPECT_EQ(find_kind("", "v2", "Pod"), nullptr);
}

TEST(Catalog, FindsEveryTypeByItsNames) {
  for (const Type* type : builtin_types()) {
    EXPECT_EQ(find_type(type->name), type);
    if (!type->openapi_name.empty()) EXPECT_EQ(find_type_by_openapi_name(type->openapi_name), type);
  }
  EXPECT_EQ(find_type("core/v1.Podd"), nullptr);
  EXPECT_EQ(find_type_by_openapi_name("io.k8s.api.core.v1.Podd"), nullptr);
}

void check_element(const Type& owner, const Type* type);

void check_type(const Type& owner, const Type& type) {
  switch (type.shape) {
    case Shape::List:
      check_element(owner, type.element);
      EXPECT_EQ(type.list_kind == ListKind::Keyed, !type.list_keys.empty()) << owner.name;
      for (std::string_view key : type.list_keys) {
        EXPECT_NE(find_member(*type.element, key), nullptr) << owner.name << " " << key;
      }
      break;
    case Shape::Map:
      check_element(owner, type.element);
      break;
    default:
      break;
  }
}

void check_element(const Type& owner, const Type* type) {
  ASSERT_NE(type, nullptr) << owner.name;
  check_type(owner, *type);
}

TEST(Catalog, EveryTypeIsConsistent) {
  for (const Type* type : builtin_types()) {
    check_type(*type, *type);
    std::set<uint32_t> numbers;
    for (const Field& field : type->fields) {
      ASSERT_NE(field.type, nullptr) << type->name;
      EXPECT_EQ(field.inlined, field.name.empty()) << type->name;
      check_type(*type, *field.type);
      if (field.number != 0) {
        EXPECT_TRUE(numbers.insert(field.number).second) << type->name << " " << field.number;
        ASSERT_LT(field.number, type->field_at_number.size());
        EXPECT_EQ(&type->fields[type->field_at_number[field.number] - 1], &field);
      }
      if (!field.patch_merge_key.empty()) EXPECT_EQ(field.type->shape, Shape::List) << type->name << "." << field.name;
    }
    EXPECT_EQ(type->fields_by_number.size(), numbers.size());
    uint32_t previous = 0;
    for (uint8_t position : type->fields_by_number) {
      EXPECT_GT(type->fields[position].number, previous) << type->name;
      previous = type->fields[position].number;
    }
    for (const Field* member : type->members) {
      EXPECT_EQ(find_member(*type, member->name), member) << type->name << "." << member->name;
    }
    EXPECT_FALSE(type->go_name.empty()) << type->name;
  }
}

TEST(Catalog, EveryStoredKindHasMetadataAsFieldOne) {
  for (const Resource& resource : builtin_resources()) {
    const Field* metadata = find_member(*resource.type, "metadata");
    ASSERT_NE(metadata, nullptr) << resource.kind;
    EXPECT_EQ(metadata->number, 1u) << resource.kind;
    EXPECT_EQ(metadata->type, find_type("meta/v1.ObjectMeta")) << resource.kind;
  }
}

TEST(Catalog, NoTypeExceedsTheReadersFieldLimit) {
  for (const Type* type : builtin_types()) {
    EXPECT_LE(type->fields.size(), 64u) << type->name;
    EXPECT_LE(type->members.size(), 128u) << type->name;
  }
}

FieldPlan plan_of(const Field& field) {
  FieldPlan plan;
  const Type& type = *field.type;
  const bool repeated = type.shape == Shape::Map || (type.shape == Shape::List && !type.wrapped);
  const auto scalar = [](const Type& t) {
    switch (t.shape) {
      case Shape::Bool:
      case Shape::Int64:
        return FieldPlan::kVarint;
      case Shape::Int32:
        return FieldPlan::kVarint32;
      case Shape::Double:
        return FieldPlan::kFixed64;
      case Shape::String:
      case Shape::Bytes:
        return FieldPlan::kText;
      default:
        return FieldPlan::kMessage;
    }
  };
  plan.how = scalar(type);
  if (repeated) {
    const FieldPlan::How element = type.shape == Shape::Map ? FieldPlan::kMessage : scalar(*type.element);
    plan.how = element == FieldPlan::kFixed64   ? FieldPlan::kRepeatedFixed64
               : element <= FieldPlan::kFixed64 ? FieldPlan::kRepeatedVarint
                                                : FieldPlan::kRepeated;
  }
  if (field.number == 0) plan.how = FieldPlan::kNone;
  const bool can_be_nil =
      field.pointer || type.shape == Shape::List || type.shape == Shape::Map || type.shape == Shape::Any;
  if (field.omit_zero && !field.pointer) {
    plan.omit = FieldPlan::kWhenEmpty;
  } else if (field.omit_empty && !field.inlined) {
    if (can_be_nil) {
      plan.omit = FieldPlan::kWhenAbsent;
    } else if (scalar(type) != FieldPlan::kMessage) {
      plan.omit = FieldPlan::kWhenEmpty;
    }
  }
  return plan;
}

TEST(Catalog, PlansMatchTheirFields) {
  for (const Type* type : builtin_types()) {
    ASSERT_EQ(type->plan.size(), type->fields.size()) << type->name;
    for (size_t i = 0; i < type->fields.size(); ++i) {
      const Field& field = type->fields[i];
      const FieldPlan want = plan_of(field);
      EXPECT_EQ(type->plan[i].how, want.how) << type->name << "." << field.name;
      EXPECT_EQ(type->plan[i].omit, want.omit) << type->name << "." << field.name;
      EXPECT_EQ((type->shown_fields >> i & 1) != 0, want.omit == FieldPlan::kShown) << type->name;
      EXPECT_EQ((type->gated_fields >> i & 1) != 0, field.gate != Gate::kCount) << type->name;
      const Field* first = field.inlined ? field.type->members[0] : &field;
      EXPECT_EQ(type->members[type->member_starts[i]], first) << type->name;
    }
  }
}

TEST(Catalog, ListKindsHoldItemsOfTheirKind) {
  for (const Resource& resource : builtin_resources()) {
    if (resource.list_type == nullptr) continue;
    const Field* items = find_member(*resource.list_type, "items");
    ASSERT_NE(items, nullptr) << resource.kind;
    EXPECT_EQ(items->type->element, resource.type) << resource.kind;
  }
}

TEST(Catalog, MembersAreFlattenedInDeclarationOrder) {
  EXPECT_THAT(member_names(*find_type("core/v1.ConfigMapKeySelector")), ElementsAre("name", "key", "optional"));
  EXPECT_THAT(member_names(*find_type("core/v1.ConfigMap")),
              ElementsAre("kind", "apiVersion", "metadata", "immutable", "data", "binaryData"));
}

TEST(Catalog, FieldsHaveTheirMergeRules) {
  const Field* ports = find_member(*find_type("core/v1.Container"), "ports");
  EXPECT_EQ(ports->type->list_kind, ListKind::Keyed);
  EXPECT_THAT(ports->type->list_keys, ElementsAre("containerPort", "protocol"));
  EXPECT_EQ(ports->patch_merge_key, "containerPort");
  EXPECT_EQ(ports->patch_strategy, kPatchMerge);

  const Field* claim = find_member(*find_type("core/v1.PersistentVolumeSpec"), "claimRef");
  EXPECT_TRUE(claim->overrides_map_kind);
  EXPECT_EQ(claim->map_kind, MapKind::Granular);
  EXPECT_EQ(claim->type->map_kind, MapKind::Atomic);

  const Field* selector = find_member(*find_type("core/v1.PodSpec"), "nodeSelector");
  EXPECT_EQ(selector->type->map_kind, MapKind::Atomic);

  const Field* protocol = find_member(*find_type("core/v1.ContainerPort"), "protocol");
  EXPECT_EQ(protocol->default_value->as_string(), "TCP");
  EXPECT_THAT(protocol->enum_values, ElementsAre("SCTP", "TCP", "UDP"));
}

TEST(Catalog, HoldfastFieldsExistOnlyWhileTheirGateIsOn) {
  const Field* options = find_member(*find_type("meta/v1.ObjectMeta"), "options");
  EXPECT_EQ(options->number, 18u);
  EXPECT_TRUE(options->root_only);
  const Gates off = Gates().with(Gate::DeclarativeFieldManager, false);
  const Gates on = Gates().with(Gate::DeclarativeFieldManager, true);
  EXPECT_FALSE(options->exists(nullptr));
  EXPECT_FALSE(options->exists(&off));
  EXPECT_TRUE(options->exists(&on));
}

TEST(Catalog, StorageLocationsMatchKubernetes) {
  EXPECT_EQ(find_resource("", "v1", "services")->storage_prefix, "services/specs");
  const Resource* hpa = find_resource("autoscaling", "v1", "horizontalpodautoscalers");
  EXPECT_EQ(hpa->storage_version, "v2");
  const Resource* events = find_resource("events.k8s.io", "v1", "events");
  EXPECT_EQ(events->storage_group, "");
  EXPECT_TRUE(find_resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")->stored_as_json);
  EXPECT_EQ(find_resource("", "v1", "bindings")->storage_prefix, "");
}

TEST(Catalog, FindsTypeByGroupVersionKind) {
  EXPECT_EQ(find_type_of("apps", "v1", "DeploymentList"), find_type("apps/v1.DeploymentList"));
  EXPECT_EQ(find_type_of("autoscaling", "v1", "Scale"), find_type("autoscaling/v1.Scale"));
  EXPECT_EQ(find_type_of("policy", "v1", "Eviction"), find_type("policy/v1.Eviction"));
  EXPECT_EQ(find_type_of("", "v1", "Status"), find_type("meta/v1.Status"));
  EXPECT_EQ(find_type_of("apps", "v1", "DeleteOptions"), find_type("meta/v1.DeleteOptions"));
  EXPECT_EQ(find_type_of("meta.k8s.io", "v1", "PartialObjectMetadata"), find_type("meta/v1.PartialObjectMetadata"));
  EXPECT_EQ(find_type_of("apps", "v1", "DeploymentSpec"), nullptr);
  EXPECT_EQ(find_type_of("apps", "v2", "Deployment"), nullptr);
}

TEST(Catalog, SubresourcesHaveTheirBodyKinds) {
  const Resource* deployments = find_resource("apps", "v1", "deployments");
  const Subresource& scale = deployments->subresources[0];
  EXPECT_EQ(scale.name, "scale");
  EXPECT_EQ(scale.group, "autoscaling");
  EXPECT_EQ(scale.version, "v1");
  EXPECT_EQ(scale.kind, "Scale");
  EXPECT_THAT(scale.verbs, ElementsAre("get", "patch", "update"));
  const Subresource& status = deployments->subresources[1];
  EXPECT_EQ(status.group, "");
  EXPECT_EQ(status.kind, "Deployment");
}

TEST(Descriptions, BelongToEveryTypeAndField) {
  const std::shared_ptr<const Descriptions> all = Descriptions::get();
  EXPECT_EQ(Descriptions::get(), all);
  const std::set<std::string_view> unserved = {"apps/v1beta1",        "discovery/v1beta1",  "extensions/v1beta1",
                                               "flowcontrol/v1beta1", "networking/v1beta1", "node/v1alpha1",
                                               "rbac/v1alpha1",       "resource/v1beta1"};
  for (const Type* type : builtin_types()) {
    if (unserved.contains(type->name.substr(0, type->name.rfind('.')))) continue;
    EXPECT_FALSE(all->of(*type).empty()) << type->name;
    for (const Field& field : type->fields) EXPECT_EQ(all->of(field).empty(), field.inlined) << type->name;
    for (const Field* member : type->members) EXPECT_FALSE(all->of(*member).empty()) << type->name << member->name;
  }
  const Type& spec = *find_type("apps/v1.DeploymentSpec");
  EXPECT_TRUE(all->of(spec).starts_with("What a Deployment runs")) << all->of(spec);
  EXPECT_TRUE(all->of(*find_member(spec, "replicas")).starts_with("Number of pods to keep running. Default 1."));
  EXPECT_TRUE(all->of(*find_member(*find_type("core/v1.Volume"), "emptyDir")).starts_with("Directory that is empty"));
  const Type unknown{.shape = Shape::Struct, .name = "core/v1.Pod"};
  EXPECT_EQ(all->of(unknown), "");
  const Field own{.name = "spec", .type = &unknown};
  EXPECT_EQ(all->of(own), "");
}

TEST(Descriptions, StateDefaults) {
  struct Case {
    std::string_view text, want;
  };
  constexpr Case kCases[] = {
      {"Number of pods. Default 1. More.", "1"},
      {"Default `Always`.", "Always"},
      {"Share of pods. Default 25%.", "25%"},
      {"Ratio. Default 0.5.", "0.5"},
      {"Mode. Default 420, which is 0644.", ""},
      {"Default `None`, or `All` for others. Default 3.", "3"},
      {"No default. The Default `x`.", ""},
      {"Default", ""},
      {"Default `", ""},
      {"", ""},
  };
  for (const Case& c : kCases) EXPECT_EQ(stated_default(c.text), c.want) << c.text;
}

}  // namespace
}  // namespace holdfast::types
