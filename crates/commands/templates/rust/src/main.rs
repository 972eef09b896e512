fn main() {
    demi_commands::main({{crate}}::models())
}
