/* A program that does nothing: the shim is loaded into its process, and loads a program into it that is linked statically, and so loads nothing itself. */
int main(void) { return 126; }
