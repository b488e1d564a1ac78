#include <vector>

#include "ownership/typed.h"

namespace holdfast::ownership {
namespace {

class MergeWalk {
 public:
  explicit MergeWalk(Arena& arena) : arena_(arena) {}

  Value node(const MergeType& type, const Value& live, const Value& config) {
    // If the values have different kinds, the configuration's decides how the node is treated.
    const uint8_t kind = handled(pick(type, config));
    const bool map = kind == MergeType::kMap;
    const Value::Kind wanted = map ? Value::Kind::Map : Value::Kind::List;
    const bool l = live.kind() == wanted && live.count() != 0, c = config.kind() == wanted && config.count() != 0;
    const bool atomic = map ? type.atomic_map : type.atomic_list;
    if (kind == MergeType::kScalar || atomic || (!l && !c)) {
      // If they are equal, return the live value itself, which makes comparing the result with it cheap.
      return equal(live, config) ? live : config;
    }
    if (!c) return live;
    if (!l) return config;
    return map ? members(type, live, config) : items(type, live, config);
  }

 private:
  const MergeType& member_type(const MergeType& type, std::string_view key) {
    bool declared = false;
    const MergeType* child = type.member(key, declared);
    return child == nullptr ? MergeTypes::untyped_atomic() : *child;
  }

  Value members(const MergeType& type, const Value& live, const Value& config) {
    const std::span<const Member> lm = live.members(), cm = config.members();
    Member* out = nullptr;
    size_t shared = 0;
    for (size_t i = 0; i < lm.size(); ++i) {
      const Value* wanted = find_near(config, lm[i].key, i);
      if (wanted == nullptr) continue;
      ++shared;
      const Value merged = node(member_type(type, lm[i].key), lm[i].value, *wanted);
      if (merged.same(lm[i].value)) continue;
      if (out == nullptr) {
        out = arena_.allocate_array<Member>(lm.size() + cm.size());
        std::copy(lm.begin(), lm.end(), out);
      }
      out[i].value = merged;
    }
    if (out == nullptr && shared == cm.size()) return live;
    if (out == nullptr) {
      out = arena_.allocate_array<Member>(lm.size() + cm.size() - shared);
      std::copy(lm.begin(), lm.end(), out);
    }
    size_t count = lm.size();
    if (shared != cm.size()) {
      for (size_t i = 0; i < cm.size(); ++i) {
        if (find_near(live, cm[i].key, i) == nullptr) out[count++] = cm[i];
      }
    }
    return Value::map(arena_, std::span<const Member>(out, count));
  }

  // Whether both have the same items in the same order without duplicates, which is the common case.
  static bool same_order(const ItemIndex& live, const ItemIndex& config) {
    if (live.count() != config.count()) return false;
    for (size_t i = 0; i < live.count(); ++i) {
      if (live.find(config.element(i), i) != i || live.copies(i) != 1) return false;
    }
    return true;
  }

  Value pairs(const MergeType& type, const Value& live, const Value& config) {
    const std::span<const Value> li = live.items(), ci = config.items();
    Value* out = nullptr;
    for (size_t i = 0; i < li.size(); ++i) {
      const Value merged = node(*type.item, li[i], ci[i]);
      if (merged.same(li[i])) continue;
      if (out == nullptr) out = arena_.copy(li).data();
      out[i] = merged;
    }
    return out == nullptr ? live : Value::list({out, li.size()});
  }

  // The order of the result: that of the configuration for shared items, with the other live items kept between them.
  Value items(const MergeType& type, const Value& live, const Value& config) {
    const std::span<const Value> li = live.items(), ci = config.items();
    const ItemIndex l(arena_, type, li), c(arena_, type, ci);
    if (same_order(l, c)) return pairs(type, live, config);

    // Positions in the configuration of items that are also live, in its order.
    std::vector<uint32_t> shared;
    // The position of each item of the configuration in the live list, and vice versa; kNone if there is none.
    std::vector<uint32_t> in_live(ci.size(), kNone), in_config(li.size(), kNone);
    bool aligned = li.size() >= ci.size();
    for (size_t j = 0; j < ci.size(); ++j) {
      const size_t i = l.find(c.element(j), j);
      if (i == l.count()) {
        aligned = false;
        continue;
      }
      in_live[j] = static_cast<uint32_t>(i);
      shared.push_back(static_cast<uint32_t>(j));
      for (size_t copy = i; copy < l.count(); copy = l.next_copy(copy)) in_config[copy] = static_cast<uint32_t>(j);
      aligned &= l.copies(i) == 1;
    }
    std::vector<bool> emitted(ci.size(), false);
    std::vector<Value> out;
    out.reserve(li.size() + ci.size());
    size_t next = 0;  // Position in `shared`.
    auto emit_config = [&](size_t j) {
      emitted[j] = true;
      const uint32_t i = in_live[j];
      // Duplicate live items are not merged with: the configuration's single item replaces them.
      const bool merges = i != kNone && l.copies(i) == 1;
      out.push_back(merges ? node(*type.item, li[i], ci[j]) : ci[j]);
    };
    for (size_t i = 0, j = 0; i < li.size() || j < ci.size();) {
      if (i < li.size() && j < ci.size()) {
        if (in_config[i] == j) {
          emit_config(j);
          ++i, ++j, ++next;
          continue;
        }
        // A shared item that comes later in the configuration's order.
        if (in_config[i] != kNone && next < shared.size() && shared[next] != in_config[i]) {
          ++i;
          continue;
        }
      }
      if (i < li.size()) {
        if (in_config[i] == kNone) {
          out.push_back(li[i++]);
          continue;
        }
        if (emitted[in_config[i]]) ++i;
      }
      if (j < ci.size()) {
        emit_config(j);
        if (next < shared.size() && shared[next] == j) ++next;
        ++j;
      }
    }
    if (aligned && out.size() == li.size()) {
      bool unchanged = true;
      for (size_t i = 0; i < out.size() && unchanged; ++i) unchanged = out[i].same(li[i]);
      if (unchanged) return live;
    }
    return Value::list(arena_.copy(std::span<const Value>(out)));
  }

  static constexpr uint32_t kNone = UINT32_MAX;
  Arena& arena_;
};

}  // namespace

Value merge(Arena& arena, const MergeType& type, const Value& live, const Value& config) {
  return MergeWalk(arena).node(type, live, config);
}

}  // namespace holdfast::ownership
