/* An empty library of torch's name: what links to it looks for torch's own when it is loaded. */
int dualgemm_python_stub;
