// Renders objects as meta.k8s.io Tables, as printed by kubectl get.
#pragma once

#include <string>

#include "base/arena.h"
#include "render/render.h"
#include "value/value.h"

namespace holdfast::render {

// A Table with one object (in the requested version) and that object's resourceVersion. Columns are null from the
// second event of a watch on.
Value table_of(Arena& arena, const View& view, const Value& object, bool with_columns = true);
// A row: {cells, conditions, object}. `always_object` is for the bookmark that ends initial events, which carries
// metadata even with includeObject=None.
Value table_row(Arena& arena, const View& view, const Value& object, bool always_object = false);
Value table_columns(Arena& arena, const View& view);

}  // namespace holdfast::render
