// Objects as meta.k8s.io Tables: what kubectl get prints.
#pragma once

#include <string>

#include "base/arena.h"
#include "render/render.h"
#include "value/value.h"

namespace holdfast::render {

// A Table of one object (in the requested version), with the object's own resourceVersion. Without columns (null) from
// the second event of a watch on.
Value table_of(Arena& arena, const View& view, const Value& object, bool with_columns = true);
// {cells, conditions, object}. `always_object`: the bookmark that ends initial events carries metadata even under
// includeObject=None.
Value table_row(Arena& arena, const View& view, const Value& object, bool always_object = false);
Value table_columns(Arena& arena, const View& view);

}  // namespace holdfast::render
