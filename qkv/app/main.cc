// qkv: the program.
int main() { return 0; }
