/** Files that are imported as text: they lie in the executable like the code. */
declare module "*.md" {
  const text: string;
  export default text;
}
