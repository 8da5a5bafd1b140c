// Style sheets are imported for esbuild, which puts them into report.css.
declare module "*.css";
