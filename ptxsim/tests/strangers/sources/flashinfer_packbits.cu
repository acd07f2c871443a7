// FlashInfer's packing of flags into bits, from the left and from the right.
#include "compared.hpp"

#include <cstdint>
#include STRANGER

int main() {
  using namespace flashinfer::quantization;
  constexpr size_t kFlags = 4099;
  std::vector<uint8_t> flags(kFlags);
  std::mt19937 random(1);
  for (uint8_t& flag : flags) flag = random() % 2;
  OnDevice<uint8_t> d_flags(flags);
  Comparison comparison;
  for (const BitOrder order : {BitOrder::kBig, BitOrder::kLittle}) {
    OnDevice<uint8_t> bytes((kFlags + 7) / 8);
    if (PackBits(reinterpret_cast<bool*>(d_flags.get()), bytes.get(), kFlags, order, nullptr) !=
        cudaSuccess)
      return 1;
    const std::vector<uint8_t> found = bytes.read();
    for (size_t byte = 0; byte < found.size(); ++byte) {
      unsigned want = 0;
      for (size_t bit = 0; bit < 8 && byte * 8 + bit < kFlags; ++bit)
        want |= unsigned{flags[byte * 8 + bit]} << (order == BitOrder::kBig ? 7 - bit : bit);
      comparison.add(found[byte], want, 0);
    }
  }
  return comparison.tell();
}
