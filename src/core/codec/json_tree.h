// The handler that builds a tree from JSON. Private to the module.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "codec/json_parse.h"
#include "codec/repeated.h"
#include "codec/text.h"

namespace holdfast::codec {

class JsonTree {
 public:
  // `source_bytes`: size of the document, which bounds the work done for duplicate keys.
  JsonTree(Arena& arena, const JsonOptions& options, size_t source_bytes)
      : arena_(arena), options_(options), max_merged_bytes_(source_bytes * limits::kRepeatedBytesPerByte) {
    members_.reserve(64);
    items_.reserve(64);
    frames_.reserve(32);
  }

  JsonTake key(const JsonText& text) {
    const std::string_view key = text.escaped || !text.ascii ? unescape_json(text, arena_) : text.raw;
    members_.push_back({key, Value()});
    if (options_.raw == nullptr) return JsonTake::Value;
    Frame& frame = frames_.back();
    frame.below = options_.raw->child(frame.path, key);
    return options_.raw->ends_at(frame.below) ? JsonTake::Raw : JsonTake::Value;
  }
  void string(const JsonText& text) {
    add(Value::string(text.escaped || !text.ascii ? unescape_json(text, arena_) : text.raw));
  }
  void integer(int64_t number, std::string_view) { add(Value::integer(number)); }
  bool number(std::string_view text) {
    const std::optional<double> parsed = parse_float(text);
    if (!parsed && !options_.keep_huge_numbers) {
      out_of_range_ = text;
      return false;
    }
    add(Value::number(parsed ? *parsed : std::numeric_limits<double>::infinity() * (text[0] == '-' ? -1 : 1)));
    return true;
  }
  void boolean(bool b) { add(Value::boolean(b)); }
  void null() { add(Value::null()); }
  void raw(std::string_view json) { add(Value::raw(json)); }

  void begin_map() {
    frames_.push_back({static_cast<uint32_t>(members_.size()), true, path_below(), FieldPaths::kNone});
  }
  void end_map() {
    const std::span<const Member> all = open_members();
    if (all.size() > 1 && first_repeated(all, scratch_) != kNoneRepeated) [[unlikely]]
      merge_repeated(frames_.back().start);
    close_map();
  }
  void begin_list() { frames_.push_back({static_cast<uint32_t>(items_.size()), false, path_below(), path_below()}); }
  void end_list() {
    const size_t start = frames_.back().start;
    frames_.pop_back();
    const std::span<const Value> items(items_.data() + start, items_.size() - start);
    const Value list = Value::list(arena_.copy(items));
    items_.resize(start);
    add(list);
  }

  Value root() const { return root_; }
  bool too_many_repeated() const { return merged_bytes_ > max_merged_bytes_; }
  bool saw_repeated() const { return saw_repeated_; }
  std::string_view out_of_range() const { return out_of_range_; }

 protected:
  // The members of the innermost open map.
  std::span<Member> open_members() {
    const size_t start = frames_.back().start;
    return {members_.data() + start, members_.size() - start};
  }
  void close_map() {
    const std::span<const Member> members = open_members();
    const Value map = members.empty() ? Value::empty_map() : Value::map(arena_, members);
    members_.resize(frames_.back().start);
    frames_.pop_back();
    add(map);
  }
  void add(Value value) {
    if (frames_.empty()) {
      root_ = value;
    } else if (frames_.back().map) {
      members_.back().value = value;
    } else {
      items_.push_back(value);
    }
  }
  size_t depth() const { return frames_.size(); }

 private:
  struct Frame {
    uint32_t start;  // First member or item of the container on its stack.
    bool map;
    FieldPaths::Node path;   // Position of the container itself among the raw paths,
    FieldPaths::Node below;  // and of the value being read.
  };

  FieldPaths::Node path_below() const { return frames_.empty() ? FieldPaths::kRoot : frames_.back().below; }

  // For duplicate keys, the last value takes the place of the first. Consecutive maps are merged if the options say so.
  void merge_repeated(size_t start);
  // Merges `maps` into one, and members that several of them have in the same way.
  Value united(std::span<const Value> maps);
  // The resulting value of members with the same key, given in document order.
  Value last_of(std::span<const Value> values);

  Arena& arena_;
  const JsonOptions& options_;
  std::vector<Member> members_;  // Of all open maps, innermost last.
  std::vector<Value> items_;     // Of all open lists.
  std::vector<Frame> frames_;
  std::vector<uint32_t> scratch_;
  Value root_;
  std::string_view out_of_range_;
  bool saw_repeated_ = false;
  const size_t max_merged_bytes_;
  size_t merged_bytes_ = 0;
};

}  // namespace holdfast::codec
