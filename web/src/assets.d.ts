// Style sheets are imported for esbuild, which puts them into dist/report.css.
declare module "*.css";
