// The variables of device selectors, with the limits of a ResourceSlice (k8s.io/dynamic-resource-allocation/cel).
#include "cel/environment.h"

namespace holdfast::cel {
namespace {

constexpr int64_t kMaxDriver = 63, kMaxDomain = 63, kMaxId = 32, kMaxText = 64;
constexpr int64_t kMaxAttributes = 32;  // Attributes plus capacities of one device.

class DeviceTypes {
 public:
  DeviceTypes() {
    const Decl* domain = leaf(string_type(), kMaxDomain);
    const Decl* id = leaf(string_type(), kMaxId);
    const Decl* attributes = map(domain, map(id, leaf(any_type(), kMaxText)));
    const Decl* capacities = map(domain, map(id, leaf(quantity_type(), 0)));
    // Kubernetes gives the flag a size; otherwise its cost would be underestimated.
    const DeclField fields[] = {field("allowMultipleAllocations", leaf(bool_type(), 1)),
                                field("attributes", attributes), field("capacity", capacities),
                                field("driver", leaf(string_type(), kMaxDriver))};
    std::vector<FieldType> types;
    for (const DeclField& one : fields) types.push_back({one.name, one.decl->type});
    Decl* device = arena_.make<Decl>();
    device->kind = Decl::Kind::Object;
    device->visible = true;
    device->fields = arena_.copy(std::span<const DeclField>(fields));
    device->type = TypeMaker(arena_).object("kubernetes.DRADevice", types, false, device);
    root_ = device;
  }
  const Decl* root() const { return root_; }

 private:
  const Decl* leaf(TypeRef type, int64_t max_elements) {
    Decl* decl = arena_.make<Decl>();
    decl->visible = true;
    decl->type = type;
    decl->max_elements = max_elements;
    return decl;
  }
  const Decl* map(const Decl* key, const Decl* element) {
    Decl* decl = arena_.make<Decl>();
    decl->kind = Decl::Kind::Map;
    decl->visible = true;
    decl->key = key;
    decl->element = element;
    decl->max_elements = kMaxAttributes;
    decl->type = TypeMaker(arena_).map(key->type, element->type);
    return decl;
  }
  static DeclField field(std::string_view name, const Decl* decl) { return {name, name, decl}; }

  Arena arena_{1024};
  const Decl* root_ = nullptr;
};

}  // namespace

const Environment& device_selectors() {
  static const DeviceTypes types;
  static const std::shared_ptr<const Environment> environment = Environment::make(
      {.variables = {{.name = "device", .type = nullptr, .decl = types.root()}}, .device_selector = true});
  return *environment;
}

}  // namespace holdfast::cel
