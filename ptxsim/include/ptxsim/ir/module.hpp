// What the parser makes of PTX text: names resolved, nothing decoded. Immutable after parse().
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ptxsim/ir/types.hpp"

namespace ptxsim {

inline constexpr int kWarpSize = 32;
inline constexpr uint32_t kAllLanes = 0xffffffffu;  // a mask of them

// Special registers (PTX ISA 9.0, "Special Registers"); axis 0..2 for .x .y .z.
enum class SpecialKind : uint8_t {
  kTid,
  kNtid,
  kCtaid,
  kNctaid,
  kClusterid,
  kNclusterid,
  kClusterCtaid,
  kClusterNctaid,
  kClusterCtarank,
  kClusterNctarank,
  kIsExplicitCluster,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kDynamicSmemSize,
  kTotalSmemSize,
  kAggrSmemSize,
  kReservedSmemOffsetBegin,
  kReservedSmemOffsetEnd,
  kReservedSmemOffsetCap,
  kReservedSmemOffset0,
  kReservedSmemOffset1,
  kWarpSz,
  kCurrentGraphExec,
};

// A register of one entry. All registers of a warp lie in one file, structure of arrays: `offset`
// is the byte offset of lane 0, lanes follow at bytes_of(type) each; a predicate is one 32-bit
// mask. Offsets are multiples of 64.
struct Register {
  std::string name;
  Type type = Type::kNone;
  uint32_t offset = 0;
};

// 8 bytes of an initial value that are an address.
struct InitialAddress {
  uint64_t at = 0;  // in the variable
  bool is_function = false;
  uint32_t symbol = 0;  // index into Module::functions or Entry::variables
  uint64_t offset = 0;  // added to a variable's address
};

struct Variable {  // .const, .global, .shared, .local, .param
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  uint64_t bytes = 0;  // 0 for an unsized .extern .shared array
  uint32_t alignment = 1;
  bool is_extern = false;   // the dynamic shared array
  bool is_managed = false;  // .attribute(.managed): the host uses it, too
  bool has_initializer = false;
  std::vector<uint8_t> initial;  // of `bytes` length when has_initializer
  std::vector<InitialAddress> addresses;
  // kParam, but no kernel parameter: it belongs to a function, or to a call. It lies in the
  // thread's frame, as .local variables do (PTX ISA, "mov": the address of a function's parameter
  // is one of .local).
  bool in_frame = false;
  int of_module = -1;       // of a variable that bodies share: its number in the module
  uint64_t offset = 0;      // params: offset in the parameter blob; in frames: from their beginning
  bool is_pointer = false;  // params: .ptr
  Space points_to = Space::kGeneric;  // params with .ptr: the space, when it is given
  uint32_t points_to_alignment = 0;   // params with .ptr: of what it points to; 0: not given
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,   // reg; negated for !p
    kImmediate,  // bits; is_float: bits is a double's pattern unless float_bytes == 4
    kVector,     // parts: {a, b, c}, and the lists in parentheses of `call`
    kAddress,  // parts[0] = base (register, symbol or immediate), parts[1..] = what follows a comma
               // or a further bracket: tensor coordinates as one kVector; `bits` = signed byte
               // offset of "+n"
    kSymbol,   // index of a Variable in scope; bits = signed byte offset of "sym+n"
    kLabel,    // statement index; the name of a .branchtargets list becomes a kVector of kLabel
    kPrototype,  // symbol: index into Entry::prototypes
    kSpecial,    // special, axis
    kPair,       // "d|p": parts[0], parts[1]
    kSink,       // _
    kFunction,   // symbol: index into Module::functions; called, or its address taken
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // also -a of vmad
  bool is_float = false;
  uint8_t float_bytes = 0;  // 4: written 0f..., bits is a float's pattern; 8: double's pattern
  uint32_t reg = 0;         // index into Entry::registers
  uint64_t bits = 0;
  uint32_t symbol = 0;  // index into Entry::variables
  uint32_t label = 0;   // index into Entry::statements
  SpecialKind special = SpecialKind::kTid;
  uint8_t axis = 0;
  std::string selector;  // of a register of a video instruction: "b0", "h10"; without the dot
  std::vector<Operand> parts;
};

struct Statement {
  bool guarded = false;  // @p or @!p
  bool guard_negated = false;
  uint32_t guard = 0;  // index into Entry::registers
  std::string root;    // "cp", "tcgen05", "add"
  std::vector<std::string>
      modifiers;  // without dots, as written: {"async", "bulk", "tensor", "2d", "shared::cluster"}
  std::vector<Operand> operands;
  std::string text;           // the statement as written, blanks squeezed, for messages and traces
  int line = 0;               // of the PTX text, 1-based
  int loc = -1;               // index into Module::locations, -1: no .loc before it
  bool not_unrolled = false;  // `.pragma "nounroll"` stands before it
};

struct Location {  // a .loc directive
  int file = 0;    // number of the .file directive
  int line = 0;
  int column = 0;
  int inlined_at =
      -1;  // index into Module::locations: the call that this code was inlined at; -1: not inlined
};

// What an indirect call may reach (PTX ISA 9.0, ".callprototype", ".calltargets").
struct Prototype {
  bool is_target_list = false;
  std::vector<uint64_t> result_bytes, param_bytes;  // of a .callprototype
  std::vector<uint32_t> targets;                    // of a .calltargets: indices into functions
};

struct Entry {
  std::string name;
  int line = 0;  // of its name in the PTX text
  // Parameters first; then, as they are declared or first named, the entry's own variables and
  // those of the module that the entry names. (A module's .shared variable that no statement names
  // takes no space.)
  std::vector<Variable> variables;
  uint32_t num_params = 0;
  uint64_t param_bytes = 0;
  std::vector<Register> registers;
  std::vector<Prototype> prototypes;
  uint64_t register_bytes = 0;  // size of a warp's register file
  uint64_t local_bytes = 0;     // per thread
  std::vector<Statement>
      statements;  // the last one ends the thread: a `ret` is added where the text has none
  std::array<uint32_t, 3> reqntid = {0, 0, 0};  // 0: not given
  std::array<uint32_t, 3> maxntid = {0, 0, 0};
  std::array<uint32_t, 3> reqnctapercluster = {0, 0, 0};
  bool explicit_cluster = false;
  uint32_t maxnreg = 0;                                 // registers per thread; 0: not given
  uint32_t minnctapersm = 0;                            // CTAs that an SM is to hold; 0: not given
  bool is_read() const { return !statements.empty(); }  // false: parse_entry() passed its body over
};

// Where a function finds an argument, or leaves a result.
struct Formal {
  bool is_register = false;
  uint32_t index = 0;  // into the registers or variables of its body
};

struct Function {  // .func
  Entry body;      // without statements: only declared
  std::vector<Formal> results, params;
  bool is_noreturn = false;
  int alias_of = -1;  // index into Module::functions: another name of that one
  bool is_defined() const { return !body.statements.empty(); }
};

struct Module {
  std::string name;  // for messages
  int version_major = 0, version_minor = 0;
  std::string target;  // "sm_100a"
  int address_size = 64;
  std::map<int, std::string> files;
  std::vector<Location> locations;
  std::vector<Entry> entries;
  std::vector<Function> functions;
  bool has_variables = false;  // of .global or .const outside bodies
};

}  // namespace ptxsim
