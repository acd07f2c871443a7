// Parts of the program blas.cu; each gives the number of its checks that failed.
#pragma once

int factors();
int products_of_host();
