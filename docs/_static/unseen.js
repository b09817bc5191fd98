// Claims of papers: verdicts get a colour beside their word, and buttons show some of them.
const KINDS = {
  "holds": "holds",
  "holds partly": "partly",
  "does not hold": "not",
  "can't be tested here": "untested",
};

function addFilter(table, rows) {
  const words = Object.keys(KINDS).filter((word) => rows.some(([, found]) => found === word));
  if (words.length < 2) return;
  const bar = document.createElement("div");
  bar.className = "claim-filter";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Show claims by verdict");
  for (const word of ["all", ...words]) {
    const count = word === "all" ? rows.length : rows.filter(([, found]) => found === word).length;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${word} (${count})`;
    button.setAttribute("aria-pressed", String(word === "all"));
    button.addEventListener("click", () => {
      for (const other of bar.children) other.setAttribute("aria-pressed", String(other === button));
      for (const [row, found] of rows) row.classList.toggle("filtered", word !== "all" && found !== word);
    });
    bar.append(button);
  }
  (table.closest(".pst-scrollable-table-container") ?? table).before(bar);
}

// Phones hide scroll bars: a table that is wider than the page says that there is more.
function hint(table) {
  const wide = table.scrollWidth > table.clientWidth + 1;
  const above = table.previousElementSibling;
  const there = above?.classList.contains("scroll-hint");
  if (wide && !there) {
    const line = document.createElement("p");
    line.className = "scroll-hint";
    line.textContent = "wider than the page: more to the right \u2192";
    table.before(line);
  } else if (!wide && there) above.remove();
}

document.addEventListener("DOMContentLoaded", () => {
  // What scrolls can be reached by the keyboard; the theme sees to blocks of code.
  for (const box of document.querySelectorAll(".bd-article table, mjx-container[display]")) box.tabIndex = 0;
  // Pictures of the gallery hide the text of their links.
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a")) link.setAttribute("aria-label", link.textContent);
  const watch = new ResizeObserver((seen) => seen.forEach((entry) => hint(entry.target)));
  for (const table of document.querySelectorAll(".bd-article table")) watch.observe(table);
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    const place = heads.indexOf("verdict");
    if (place < 0) continue;
    const rows = [];
    for (const row of table.querySelectorAll("tbody tr")) {
      const cell = row.children[place];
      const word = cell.textContent.trim();
      if (!(word in KINDS)) continue;
      const badge = document.createElement("span");
      badge.className = `verdict verdict-${KINDS[word]}`;
      badge.textContent = word;
      cell.replaceChildren(badge);
      rows.push([row, word]);
    }
    addFilter(table, rows);
  }
});
