// The grammar of programs, in PEGTL's terms. Every rule eats the blanks and comments after it, so
// a failed must<> stands at the token that is wrong. engine/model/saga/README.md has it in EBNF.
#pragma once

#include <string_view>
#include <tao/pegtl.hpp>

namespace ooc::saga::grammar {

namespace peg = tao::pegtl;

struct comment : peg::if_must<peg::one<'#'>, peg::until<peg::eolf>> {};
struct blanks : peg::star<peg::sor<peg::space, comment>> {};

template <char c>
struct symbol : peg::seq<peg::one<c>, blanks> {};

template <class Keyword>
struct word : peg::seq<Keyword, blanks> {};

struct word_layer : word<TAO_PEGTL_KEYWORD("layer")> {};
struct word_model : word<TAO_PEGTL_KEYWORD("model")> {};
struct word_param : word<TAO_PEGTL_KEYWORD("param")> {};
struct word_edge : word<TAO_PEGTL_KEYWORD("edge")> {};
struct word_gather : word<TAO_PEGTL_KEYWORD("gather")> {};
struct word_vertex : word<TAO_PEGTL_KEYWORD("vertex")> {};
struct word_return : word<TAO_PEGTL_KEYWORD("return")> {};
struct word_with : word<TAO_PEGTL_KEYWORD("with")> {};
struct word_loops : word<TAO_PEGTL_KEYWORD("loops")> {};
struct word_and : word<TAO_PEGTL_KEYWORD("and")> {};
struct word_weights : word<TAO_PEGTL_KEYWORD("weights")> {};
struct word_softmax : word<TAO_PEGTL_KEYWORD("softmax")> {};
struct word_input : word<TAO_PEGTL_KEYWORD("input")> {};
struct word_linear : word<TAO_PEGTL_KEYWORD("linear")> {};
struct word_stack : word<TAO_PEGTL_KEYWORD("stack")> {};
struct word_times : word<TAO_PEGTL_KEYWORD("times")> {};
struct word_shared : word<TAO_PEGTL_KEYWORD("shared")> {};
struct word_plain : word<TAO_PEGTL_KEYWORD("plain")> {};
struct word_jumping : word<TAO_PEGTL_KEYWORD("jumping")> {};
struct word_head : word<TAO_PEGTL_KEYWORD("head")> {};

// What can be no name of one's own. `vertex` is a name too: the rows a block works on.
struct reserved
    : peg::sor<word_layer, word_model, word_param, word_edge, word_gather, word_return, word_with> {
};
struct identifier : peg::identifier {};
struct name : peg::seq<peg::not_at<reserved>, identifier, blanks> {};
struct new_name : peg::seq<peg::not_at<word_vertex>, name> {};

struct digits : peg::plus<peg::digit> {};
struct fraction : peg::if_must<peg::one<'.'>, digits> {};
struct exponent : peg::if_must<peg::one<'e', 'E'>, peg::seq<peg::opt<peg::one<'+', '-'>>, digits>> {
};
struct unsigned_number : peg::seq<digits, peg::opt<fraction>, peg::opt<exponent>> {};
struct number : peg::seq<unsigned_number, peg::not_at<peg::identifier_other>, blanks> {};

// Expressions. Brackets nest: kMaxDepth bounds how deep.
struct sum;
struct open_bracket : symbol<'('> {};
struct close_bracket : symbol<')'> {};
struct comma : symbol<','> {};
struct arguments : peg::list_must<sum, comma> {};
struct call : peg::if_must<peg::seq<name, open_bracket>, arguments, close_bracket> {};
struct member_name : peg::seq<name> {};
struct member : peg::if_must<peg::seq<name, symbol<'.'>>, member_name> {};
struct variable : peg::seq<name> {};
struct group : peg::if_must<open_bracket, sum, close_bracket> {};
struct minus : symbol<'-'> {};
struct operand : peg::seq<peg::star<minus>, peg::sor<number, call, member, variable, group>> {};
struct product_operator : peg::seq<peg::one<'*', '/', '@'>, blanks> {};
struct product : peg::seq<operand, peg::star<peg::if_must<product_operator, operand>>> {};
struct sum_operator : peg::seq<peg::one<'+', '-'>, blanks> {};
struct sum : peg::seq<product, peg::star<peg::if_must<sum_operator, product>>> {};
inline constexpr std::size_t kMaxDepth = 64;

// A layer.
struct equals : symbol<'='> {};
struct open_brace : symbol<'{'> {};
struct close_brace : symbol<'}'> {};
struct binding : peg::if_must<peg::seq<new_name, equals>, sum> {};
struct initial_number : peg::seq<peg::opt<peg::one<'-'>>, number> {};
struct initial_name : word<peg::sor<TAO_PEGTL_KEYWORD("glorot"), TAO_PEGTL_KEYWORD("zeros"),
                                    TAO_PEGTL_KEYWORD("ones")>> {};
struct initial : peg::sor<initial_number, initial_name> {};
struct sizes_end : symbol<']'> {};
struct sizes
    : peg::if_must<symbol<'['>, peg::seq<sum, peg::opt<peg::if_must<comma, sum>>>, sizes_end> {};
struct parameter : peg::seq<new_name, peg::opt<sizes>, peg::opt<peg::if_must<equals, initial>>> {};
struct parameters : peg::if_must<word_param, peg::list_must<parameter, comma>> {};

struct return_line : peg::if_must<word_return, sum> {};
struct block_end : symbol<'}'> {};
struct block : peg::if_must<open_brace, peg::star<binding>, return_line, block_end> {};
struct edge_block : peg::if_must<word_edge, block> {};
struct vertex_block : peg::if_must<word_vertex, block> {};
struct fold_name
    : word<peg::sor<TAO_PEGTL_KEYWORD("sum"), TAO_PEGTL_KEYWORD("mean"), TAO_PEGTL_KEYWORD("max"),
                    TAO_PEGTL_KEYWORD("min"), TAO_PEGTL_KEYWORD("aggr")>> {};
struct score_name : peg::seq<name> {};
struct softmax_fold : peg::if_must<word_softmax, open_bracket, score_name, close_bracket> {};
struct fold : peg::sor<fold_name, softmax_fold> {};
struct and_weights : peg::if_must<word_and, word_weights> {};
struct with_parts : peg::sor<peg::seq<word_loops, peg::opt<and_weights>>, word_weights> {};
struct with : peg::if_must<word_with, with_parts> {};
struct gather : peg::if_must<word_gather, fold, peg::opt<with>> {};
struct gather_part : peg::sor<peg::if_must<edge_block, gather>, gather> {};
struct vertex_after_gather : peg::seq<vertex_block> {};
struct declaration : peg::sor<parameters, binding> {};
struct layer_parts
    : peg::seq<peg::star<declaration>,
               peg::sor<peg::if_must<gather_part, vertex_after_gather>, vertex_block>> {};
struct layer_name : peg::seq<new_name> {};
struct width_name : peg::seq<new_name> {};
struct layer : peg::if_must<word_layer, layer_name, open_bracket, width_name, comma, width_name,
                            close_bracket, open_brace, layer_parts, close_brace> {};

// The model block.
struct input_line : peg::if_must<word_input, word_linear> {};
struct times : peg::if_must<word_times, sum> {};
struct stack_line : peg::if_must<word_stack, layer_name, peg::opt<times>, peg::opt<word_shared>,
                                 peg::opt<word_plain>> {};
struct jumping_name : word<peg::sor<TAO_PEGTL_KEYWORD("none"), TAO_PEGTL_KEYWORD("sum"),
                                    TAO_PEGTL_KEYWORD("cat"), TAO_PEGTL_KEYWORD("max")>> {};
struct jumping_line : peg::if_must<word_jumping, jumping_name> {};
struct head_line : peg::if_must<word_head, word_linear> {};
struct stacks : peg::plus<stack_line> {};
struct model_end : symbol<'}'> {};
struct model : peg::if_must<word_model, open_brace, peg::opt<input_line>, stacks,
                            peg::opt<jumping_line>, peg::opt<head_line>, model_end> {};

struct first_layer : peg::seq<layer> {};
struct end : peg::eof {};
struct file : peg::must<blanks, first_layer, peg::star<peg::sor<layer, model>>, end> {};

// What a message says was expected where a rule that must match doesn't.
template <class Rule>
inline constexpr const char* expected = nullptr;
template <class... Rules>
inline constexpr const char* expected<peg::opt<Rules...>> = "";  // these always match
template <class... Rules>
inline constexpr const char* expected<peg::star<Rules...>> = "";
template <>
inline constexpr const char* expected<blanks> = "";
template <>
inline constexpr const char* expected<peg::until<peg::eolf>> = "";
template <>
inline constexpr const char* expected<digits> = "a digit";
template <>
inline constexpr const char* expected<arguments> = "an expression";
template <>
inline constexpr const char* expected<peg::seq<peg::opt<peg::one<'+', '-'>>, digits>> =
    "an exponent";
template <>
inline constexpr const char* expected<sum> = "an expression";
template <>
inline constexpr const char* expected<operand> = "an expression";
template <>
inline constexpr const char* expected<product> = "an expression";
template <>
inline constexpr const char* expected<close_bracket> = "an operator or )";
template <>
inline constexpr const char* expected<member_name> = "a name";
template <>
inline constexpr const char* expected<score_name> = "a name of the edge block";
template <>
inline constexpr const char* expected<initial> = "glorot, zeros, ones or a number";
template <>
inline constexpr const char* expected<peg::seq<sum, peg::opt<peg::if_must<comma, sum>>>> = "a size";
template <>
inline constexpr const char* expected<sizes_end> = ", or ]";
template <>
inline constexpr const char* expected<parameter> = "a name for a parameter";
template <>
inline constexpr const char* expected<peg::list_must<parameter, comma>> = "a name for a parameter";
template <>
inline constexpr const char* expected<return_line> = "return or a binding (name = ...)";
template <>
inline constexpr const char* expected<block_end> = "an operator or }";
template <>
inline constexpr const char* expected<block> = "{";
template <>
inline constexpr const char* expected<fold> = "sum, mean, max, min, aggr or softmax(...)";
template <>
inline constexpr const char* expected<open_bracket> = "(";
template <>
inline constexpr const char* expected<comma> = ",";
template <>
inline constexpr const char* expected<with_parts> = "loops or weights";
template <>
inline constexpr const char* expected<word_weights> = "weights";
template <>
inline constexpr const char* expected<gather> = "gather";
template <>
inline constexpr const char* expected<vertex_after_gather> = "vertex";
template <>
inline constexpr const char* expected<layer_parts> =
    "param, a binding (name = ...), edge, gather or vertex";
template <>
inline constexpr const char* expected<layer_name> = "a name of a layer";
template <>
inline constexpr const char* expected<width_name> = "a name for a width";
template <>
inline constexpr const char* expected<open_brace> = "{";
template <>
inline constexpr const char* expected<close_brace> = "}";
template <>
inline constexpr const char* expected<word_linear> = "linear";
template <>
inline constexpr const char* expected<stacks> = "stack";
template <>
inline constexpr const char* expected<jumping_name> = "none, sum, cat or max";
template <>
inline constexpr const char* expected<model_end> = "a further line of the model or }";
template <>
inline constexpr const char* expected<first_layer> = "layer";
template <>
inline constexpr const char* expected<end> = "layer or model";

}  // namespace ooc::saga::grammar
