// Over mdBook's own: what scrolls is reached by keys, and the switch of the sidebar is the button that its attributes say it is.
for (const part of document.querySelectorAll("pre > code, .table-wrapper")) part.tabIndex = 0;
document.getElementById("mdbook-sidebar-toggle")?.setAttribute("role", "button");
