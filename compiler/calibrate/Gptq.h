// GPTQ (Frantar et al. 2022): codes column by column, the error of each column
// made good by those that are still to come, as far as the inputs allow it.
#pragma once

#include "compiler/calibrate/GroupCodes.h"

namespace ingot {

struct GptqOptions {
  double damping = 0.01; // of the mean of the diagonal, added to the diagonal
  unsigned threads = 1;
};

// `weights` [rows, columns]; `moments` [columns, columns], the mean of x x' over
// the inputs. Columns are taken by the size of their inputs, the largest first, which
// leaves their errors most columns to be made good by. Groups are of columns that lie
// side by side all the same: their scales are chosen for the weights as they are, before
// the first column ("static groups"), with 4 bits those that the inputs mind least
// (GroupScales.h), with 8 bits as rounding would. Fails where the moments or weights are
// not finite, or a group needs a scale beyond float16.
Result<GroupCodes> gptq(std::span<const float> weights, std::int64_t rows,
                        std::int64_t columns, std::span<const float> moments,
                        const CodeShape &shape,
                        const GptqOptions &options = {});

// Several weights of the same inputs need the factor once.
class GptqFactor {
public:
  static Result<GptqFactor> create(std::span<const float> moments,
                                   std::int64_t columns, double damping);
  Result<GroupCodes> apply(std::span<const float> weights, std::int64_t rows,
                           const CodeShape &shape, unsigned threads) const;

private:
  std::int64_t columns_ = 0;
  // The columns as they are taken.
  std::vector<std::int64_t> order_;
  // U of H^-1 = U'U, upper, in that order: row q says what column q owes to later ones.
  std::vector<float> factor_;
  // What an error of each column costs, once later ones have made it good.
  std::vector<float> importance_;
};

} // namespace ingot
