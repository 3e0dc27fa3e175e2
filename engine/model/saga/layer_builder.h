// A layer of a program, checked and built: its expressions become operators of the tensor graph.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/saga/functions.h"

namespace ooc::saga {

class LayerBuilder {
 public:
  // All of it outlives the builder.
  LayerBuilder(ModelParts& parts, const Program& program, const Layer& layer,
               const LayerSetting& setting);

  // What the vertex block returns, before the activation it ends with. UsageError for whatever is
  // wrong in the layer, DataError where the dataset's edges lack what it reads.
  TensorId run(TensorId input);
  // That activation, if there is one.
  TensorId activate(TensorId x);

 private:
  enum class Where { kLayer, kEdge, kVertex };
  struct Named {
    Place place;
    bool used = false;
    Where where = Where::kLayer;           // where it was bound
    const Parameter* parameter = nullptr;  // made when it is first used
    Value value;
  };

  void declare(const std::string& name, const Place& place, Named named);
  void bind(const std::vector<Binding>& bindings);
  void check_used() const;
  std::vector<std::string> known_names() const;

  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_member(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Value* first = nullptr);
  Value use(Named& named);
  Value make_parameter(const Parameter& parameter);
  std::int64_t size(const Expression& expression);
  std::optional<double> number_of(const std::string& name) const;

  TensorId on_edges(const std::string& end, TensorId rows);
  Value edge_data(const std::string& member, const Place& place);
  TensorId rows_of(const Expression& expression, const Value& value) const;
  TensorId gather();
  // The expression after the outermost activation of the vertex block.
  const Expression& behind_activation() const;
  bool ends_with_activation() const;
  Value evaluate_unbiased(const Expression& expression);

  ModelParts& parts_;
  const std::string& source_;
  const Layer& layer_;
  LayerSetting setting_;
  Arithmetic arithmetic_;
  Where where_ = Where::kLayer;
  TensorId input_ = -1;
  TensorId accum_ = -1;
  bool loops_ = false;
  bool weighted_ = false;  // the gather says `with weights`, and they are used
  bool in_size_ = false;   // of a parameter: made of numbers, never of parameters
  std::map<std::string, Named> names_;
  std::map<std::string, int> owned_;  // how many functions have brought parameters, by name
  std::map<std::pair<std::string, TensorId>, TensorId> ends_;  // vertex rows already at the edges
};

}  // namespace ooc::saga
