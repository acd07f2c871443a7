/* An empty libcudart.so.<version>, libcublas.so.<version> or libcublasLt.so.<version> for the
 * loader: programs that were linked with one (-cudart shared, -lcublas) ask for the file and for
 * its version of symbols, and find the functions in the preloaded library. It is met only below
 * `ptxsim exec`. */
extern int ptxsim_cudart_anchor;
int ptxsim_cudart_anchor;
