fn main() {
    demi_lineage::main({{crate}}::models())
}
