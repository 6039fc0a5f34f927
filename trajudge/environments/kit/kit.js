// The behaviour of the kit's widgets, by the patterns of the WAI-ARIA Authoring Practices.
//
// Every page works without this file: what is folded is a <details>, a choice is a <select>, a date
// an <input>, a list has a link to its next part. The script replaces how that is reached, never
// what is sent: it changes nothing on the server, reads at most the next part of a list, and lets
// forms be sent by the page's own navigation. <html data-idle> says whether something is pending.
"use strict";
(() => {
  const root = document.documentElement;
  let pending = 0;
  let names = 0;

  const busy = (by) => {
    pending += by;
    root.dataset.idle = pending ? "no" : "yes";
  };

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    set(element, attributes);
    element.append(...children);
    return element;
  };
  const set = (element, attributes) => {
    for (const [name, value] of Object.entries(attributes))
      if (value === null) element.removeAttribute(name);
      else element.setAttribute(name, value);
    return element;
  };
  const idOf = (element) => (element.id ||= `w${++names}`);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const on = (target, kind, act) => target.addEventListener(kind, act);
  const button = (label, attributes = {}) => make("button", { type: "button", ...attributes }, label);
  const nameOf = (control) =>
    control.getAttribute("aria-label") ?? textOf(control.labels?.[0] ?? make("p"));
  const textOf = (element) => element.textContent.replace(/\s+/g, " ").trim();

  // Act on keys by name ("Shift+PageUp"); what returns false leaves the key to the browser.
  const keys = (target, table) =>
    on(target, "keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
      const key = event.key === " " ? "Space" : event.key;
      const act = table[event.shiftKey && key.length > 1 ? `Shift+${key}` : key] ?? table.any;
      if (act && act(event) !== false) {
        event.preventDefault();
        event.stopPropagation();
      }
    });

  const step = (items, by) => {
    const at = items.indexOf(document.activeElement);
    return items[(at + by + items.length) % items.length];
  };
  // The next item, after the focused one, that begins with the character typed.
  const typed = (items, event) => {
    if (event.key.length !== 1 || event.key === " ") return false;
    const at = items.indexOf(document.activeElement) + 1;
    const turned = [...items.slice(at), ...items.slice(0, at)];
    const found = turned.find((item) =>
      textOf(item).toLowerCase().startsWith(event.key.toLowerCase()));
    found?.focus();
    return Boolean(found);
  };
  // Give one of several items the only place in the order of the tabulator key.
  const rove = (items, chosen) => items.forEach((item) => (item.tabIndex = item === chosen ? 0 : -1));

  // --- menu button ---

  const menu = (details) => {
    const summary = details.querySelector("summary");
    const list = details.querySelector("ul");
    const opener = button("", { "aria-haspopup": "menu", "aria-expanded": "false", class: "opener" });
    opener.append(...summary.childNodes);
    if (summary.hasAttribute("aria-label"))
      opener.setAttribute("aria-label", summary.getAttribute("aria-label"));
    opener.setAttribute("aria-controls", idOf(list));
    set(list, { role: "menu", "aria-labelledby": idOf(opener) });
    for (const entry of list.children) entry.setAttribute("role", "none");
    for (const form of all("form", list)) form.setAttribute("role", "none");
    const items = all("a, button", list);
    for (const item of items) set(item, { role: "menuitem", tabindex: "-1" });
    const open = (item) => {
      list.hidden = false;
      opener.setAttribute("aria-expanded", "true");
      item.focus();
    };
    const close = (back) => {
      list.hidden = true;
      opener.setAttribute("aria-expanded", "false");
      if (back) opener.focus();
    };
    const box = make("div", { class: details.className }, opener, list);
    list.hidden = true;
    details.replaceWith(box);
    on(opener, "click", () => (list.hidden ? open(items[0]) : close(true)));
    keys(opener, {
      ArrowDown: () => open(items[0]),
      ArrowUp: () => open(items.at(-1)),
      Escape: () => list.hidden ? false : close(true),
    });
    keys(list, {
      ArrowDown: () => step(items, 1).focus(),
      ArrowUp: () => step(items, -1).focus(),
      Home: () => items[0].focus(),
      End: () => items.at(-1).focus(),
      Escape: () => close(true),
      Space: () => document.activeElement.click(),
      Tab: () => (close(false), false),
      "Shift+Tab": () => (close(false), false),
      any: (event) => typed(items, event),
    });
    on(document, "pointerdown", (event) => box.contains(event.target) || close(false));
  };

  // --- tabs, with automatic activation ---

  const tabs = (box) => {
    const list = make("div", { role: "tablist", "aria-label": box.dataset.label });
    const pairs = [...box.children].map((details) => {
      const summary = details.querySelector("summary");
      const panel = make("div", { role: "tabpanel", tabindex: "0" });
      const tab = button(textOf(summary), { role: "tab", "aria-controls": idOf(panel) });
      panel.setAttribute("aria-labelledby", idOf(tab));
      summary.remove();
      panel.append(...details.childNodes);
      return { tab, panel, open: details.open };
    });
    const buttons = pairs.map((pair) => pair.tab);
    const select = (chosen) => {
      for (const { tab, panel } of pairs) {
        tab.setAttribute("aria-selected", String(tab === chosen));
        panel.hidden = tab !== chosen;
      }
      rove(buttons, chosen);
    };
    const go = (tab) => {
      select(tab);
      tab.focus();
    };
    for (const tab of buttons) on(tab, "click", () => select(tab));
    keys(list, {
      ArrowRight: () => go(step(buttons, 1)),
      ArrowLeft: () => go(step(buttons, -1)),
      Home: () => go(buttons[0]),
      End: () => go(buttons.at(-1)),
    });
    list.append(...buttons);
    box.replaceChildren(list, ...pairs.map((pair) => pair.panel));
    select((pairs.find((pair) => pair.open) ?? pairs[0]).tab);
  };

  // --- dialogs that the page was served with ---

  const question = (box) => {
    const stops = all("a, button, input:not([type=hidden]), select, textarea", box);
    const leave = box.querySelector("[data-cancel]") ?? stops[0];
    keys(box, {
      Escape: () => leave.click(),
      Tab: () => document.activeElement === stops.at(-1) ? stops[0].focus() : false,
      "Shift+Tab": () => document.activeElement === stops[0] ? stops.at(-1).focus() : false,
    });
    leave.focus(); // the least that can happen
  };

  // --- dialog ---

  const modal = (details) => {
    const title = textOf(details.querySelector("summary"));
    const opener = button(title, { "aria-haspopup": "dialog", class: "opener" });
    const closer = button("×", { "aria-label": "Close", class: "closer" });
    const box = make("dialog", { class: "modal", "aria-label": title }, closer);
    details.querySelector("summary").remove();
    box.append(...details.childNodes);
    details.replaceWith(opener, box); // showModal keeps the focus inside, Escape closes
    on(opener, "click", () => {
      box.showModal();
      box.querySelector("input:not([type=hidden]), select, textarea")?.focus();
    });
    on(closer, "click", () => box.close());
    on(box, "close", () => opener.focus());
  };

  // --- disclosure: Escape folds it, and what is edited in place has the focus ---

  const inline = (details) => {
    const summary = details.querySelector("summary");
    on(summary, "click", () => setTimeout(() => {
      if (details.open) details.querySelector("input:not([type=hidden]), select, textarea")?.focus();
    }, 0));
    keys(details, {
      Escape: () => {
        if (!details.open) return false;
        details.querySelector("form").reset();
        details.open = false;
        summary.focus();
      },
    });
  };

  // --- combobox with a list of suggestions ---

  const combobox = (select) => {
    const called = nameOf(select);
    const real = (option) => option && option.dataset.none === undefined;
    const choices = [...select.options].filter(real);
    const label = (option) => real(option) ? textOf(option) : "";
    const input = make("input", {
      type: "text", role: "combobox", autocomplete: "off", "aria-autocomplete": "list",
      "aria-expanded": "false", id: select.id, value: label(select.selectedOptions[0]),
    });
    for (const name of ["aria-label", "aria-describedby"])
      if (select.hasAttribute(name)) {
        input.setAttribute(name, select.getAttribute(name));
        select.removeAttribute(name);
      }
    if (select.required) input.setAttribute("aria-required", "true");
    input.disabled = select.disabled;
    select.removeAttribute("id");
    select.hidden = true;
    const list = make("ul", { role: "listbox", class: "popup", "aria-label": called });
    list.hidden = true;
    input.setAttribute("aria-controls", idOf(list));
    const items = choices.map((option) => {
      const item = make("li", { role: "option", "aria-selected": "false" }, textOf(option));
      idOf(item);
      on(item, "click", () => take(option));
      list.append(item);
      return { item, option };
    });
    on(list, "pointerdown", (event) => event.preventDefault()); // the focus stays in the text
    select.after(make("div", { class: "combobox" }, input, list));
    let active = null;
    const shown = () => items.filter(({ item }) => !item.hidden);
    const mark = (entry) => {
      active?.item.setAttribute("aria-selected", "false");
      active = entry ?? null;
      active?.item.setAttribute("aria-selected", "true");
      set(input, { "aria-activedescendant": active ? active.item.id : null });
      active?.item.scrollIntoView({ block: "nearest" });
    };
    const unfold = () => {
      list.hidden = !shown().length;
      input.setAttribute("aria-expanded", String(!list.hidden));
    };
    const fold = () => {
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      mark(null);
    };
    const filter = (text) => {
      for (const { item } of items)
        item.hidden = !textOf(item).toLowerCase().includes(text.toLowerCase());
    };
    const take = (option) => {
      option.selected = true;
      input.value = textOf(option);
      filter("");
      fold();
    };
    const move = (by) => {
      if (list.hidden) unfold();
      const entries = shown();
      if (!entries.length) return;
      const at = entries.indexOf(active);
      mark(at < 0 ? entries.at(by > 0 ? 0 : -1) : entries[(at + by + entries.length) % entries.length]);
    };
    on(input, "input", () => {
      const text = input.value.trim();
      filter(text);
      mark(null);
      const exact = items.find(({ item }) => textOf(item).toLowerCase() === text.toLowerCase());
      if (exact) take(exact.option);
      else {
        if (!text) select.value = "";
        unfold();
      }
    });
    on(input, "click", () => list.hidden ? (filter(""), unfold()) : fold());
    on(input, "blur", () => {
      fold();
      input.value = label(select.selectedOptions[0]);
    });
    keys(input, {
      ArrowDown: () => move(1),
      ArrowUp: () => move(-1),
      Enter: () => list.hidden ? false : active ? take(active.option) : fold(),
      Escape: () => {
        if (!list.hidden) fold();
        else {
          input.value = "";
          select.value = "";
        }
      },
    });
  };
  // --- slider before a number ---

  const slider = (input) => {
    const range = make("input", { type: "range", min: input.min, max: input.max,
      "aria-label": nameOf(input) });
    range.value = input.value;
    on(range, "input", () => (input.value = range.value));
    on(input, "input", () => (range.value = input.value));
    range.disabled = input.disabled;
    input.before(range);
  };

  // --- upload ---

  const upload = (input) => {
    const remover = button("Remove file");
    const area = make("div", { class: "drop" });
    const show = () => (remover.hidden = !input.files.length);
    input.replaceWith(area);
    area.append(input, remover);
    on(input, "change", show);
    on(area, "dragover", (event) => event.preventDefault());
    on(area, "drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files.length === 1) input.files = event.dataTransfer.files;
      show();
    });
    on(remover, "click", () => {
      input.value = "";
      show();
      input.focus();
    });
    show();
  };

  // --- carousel: a row of pictures that is moved by buttons ---

  const carousel = (box) => {
    const row = box.querySelector("ul");
    const label = textOf(box.firstElementChild);
    set(box, { role: "region", "aria-roledescription": "carousel", "aria-label": label });
    const ends = () => {
      back.disabled = row.scrollLeft < 1;
      onward.disabled = row.scrollLeft + row.clientWidth > row.scrollWidth - 2;
    };
    const turner = (sign, name, way) => {
      const turn = button(sign, { "aria-label": `${name}: ${label}` });
      on(turn, "click", () => row.scrollBy({ left: way * row.clientWidth, behavior: "instant" }));
      return turn;
    };
    const back = turner("‹", "Previous", -1);
    const onward = turner("›", "Next", 1);
    on(row, "scroll", ends);
    box.firstElementChild.after(make("div", { class: "turns" }, back, onward));
    ends();
  };

  // --- date picker dialog ---

  const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August",
    "September", "October", "November", "December"];
  const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
  const iso = (day) => day.toISOString().slice(0, 10);
  const day = (text) => /^\d{4}-\d\d-\d\d$/.test(text) && iso(new Date(text)) === text
    ? new Date(text) : null;
  const moved = (from, days, months = 0) => {
    const first = new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + months, 1));
    const most = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
    first.setUTCDate(Math.min(from.getUTCDate(), most));
    return new Date(first.getTime() + days * 864e5);
  };
  const weekday = (date) => (date.getUTCDay() + 6) % 7;
  const spoken = (date) =>
    `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;

  const datepicker = (input) => {
    const name = nameOf(input);
    set(input, { type: "text", placeholder: "YYYY-MM-DD", inputmode: "numeric" });
    const opener = button("Choose date", { class: "opener", "aria-haspopup": "dialog" });
    const title = make("h2", { "aria-live": "polite" });
    const grid = make("table", { role: "grid", "aria-labelledby": idOf(title) });
    const heads = DAYS.map((long) => make("th", { scope: "col", abbr: long }, long.slice(0, 2)));
    const body = make("tbody");
    grid.append(make("thead", {}, make("tr", {}, ...heads)), body);
    const turn = (label, sign, months) => {
      const turner = button(sign, { "aria-label": label });
      on(turner, "click", () => show(moved(focused, 0, months), false));
      return turner;
    };
    const cancel = button("Cancel");
    const fine = button("OK");
    const box = make("dialog", { class: "datepicker", "aria-label": `Choose date: ${name}` },
      make("div", { class: "turns" }, turn("Previous year", "«", -12), turn("Previous month", "‹", -1),
        title, turn("Next month", "›", 1), turn("Next year", "»", 12)),
      grid, make("div", { class: "turns" }, cancel, fine));
    const holder = make("div", { class: "date" });
    input.replaceWith(holder);
    holder.append(input, opener, box);
    opener.disabled = input.disabled;
    let focused = day("1970-01-01");
    const label = () => {
      const now = day(input.value);
      opener.setAttribute("aria-label",
        now ? `Change ${name}, ${spoken(now)}` : `Choose date: ${name}`);
    };
    const show = (date, focus = true) => {
      focused = date;
      title.textContent = `${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
      const first = moved(date, 1 - date.getUTCDate());
      const start = moved(first, -weekday(first));
      const rows = [];
      for (let week = 0; week < 6; week += 1) {
        const cells = DAYS.map((_, place) => cell(moved(start, 7 * week + place), date));
        if (week === 0 || cells.some((one) => one.dataset.date)) rows.push(make("tr", {}, ...cells));
      }
      body.replaceChildren(...rows);
      if (focus) body.querySelector("[tabindex='0']").focus();
    };
    const cell = (date, around) => {
      if (date.getUTCMonth() !== around.getUTCMonth()) return make("td");
      const at = iso(date);
      const one = make("td", {
        "data-date": at, tabindex: at === iso(around) ? "0" : "-1",
        "aria-selected": at === input.value ? "true" : null,
        "aria-label": `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`,
      }, String(date.getUTCDate()));
      on(one, "click", () => take(date));
      return one;
    };
    const take = (date) => {
      input.value = iso(date);
      label();
      box.close();
    };
    on(opener, "click", () => {
      box.showModal();
      show(day(input.value) ?? new Date(iso(new Date())));
    });
    on(box, "close", () => opener.focus());
    on(cancel, "click", () => box.close());
    on(fine, "click", () => take(focused));
    on(input, "change", label);
    const by = (days, months) => () => show(moved(focused, days, months));
    keys(grid, {
      ArrowRight: by(1), ArrowLeft: by(-1), ArrowDown: by(7), ArrowUp: by(-7),
      Home: () => show(moved(focused, -weekday(focused))),
      End: () => show(moved(focused, 6 - weekday(focused))),
      PageUp: by(0, -1), PageDown: by(0, 1), "Shift+PageUp": by(0, -12), "Shift+PageDown": by(0, 12),
      Enter: () => take(focused), Space: () => take(focused),
    });
    label();
  };

  // --- a list that is complete: sorted and filtered in place ---

  const worth = (text) => {
    const number = Number(text.replace(/[$,%\s]/g, ""));
    return text && !Number.isNaN(number) ? number : text.toLowerCase();
  };
  const compare = (one, other) => typeof one === typeof other
    ? (one < other ? -1 : Number(one > other)) : typeof one === "number" ? -1 : 1;

  const table = (box) => {
    const body = box.querySelector("tbody") ?? box.querySelector("ul");
    const rows = [...body.children];
    for (const [column, head] of all("thead th:not([data-plain])", box).entries()) {
      const sorter = button(textOf(head), { class: "sorter" });
      head.replaceChildren(sorter);
      on(sorter, "click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of all("th", box)) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => worth(textOf(row.children[column]));
        rows.sort((one, other) => (down ? -1 : 1) * compare(key(one), key(other)));
        body.append(...rows);
      });
    }
    if (rows.length < 4) return;
    const filter = make("input", { type: "search", "aria-label": box.dataset.filter, class: "filter",
      placeholder: box.dataset.filter });
    const count = make("p", { role: "status", class: "count" });
    on(filter, "input", () => {
      const wanted = filter.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !textOf(row).toLowerCase().includes(wanted);
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = wanted ? `${left} / ${rows.length}` : "";
    });
    box.before(filter, count);
  };

  // --- grid: a table whose cells the arrow keys reach, and what can be done in them ---

  const grid = (box) => {
    table(box);
    const body = box.querySelector("tbody");
    if (!body) return;
    set(box.querySelector("table"), { role: "grid" });
    const stops = "a, button";
    const rows = () => [...body.rows].filter((row) => !row.hidden);
    for (const control of all(stops, body)) control.tabIndex = -1;
    const cells = all("td", body);
    for (const cell of cells) cell.setAttribute("role", "gridcell");
    const go = (cell) => {
      if (!cell) return;
      rove(cells, cell);
      cell.focus();
    };
    const at = () => document.activeElement.closest("td");
    const by = (down, right) => () => {
      const shown = rows();
      const row = shown[shown.indexOf(at().parentElement) + down];
      go(row?.cells[at().cellIndex + right]);
    };
    const inside = (way) => () => {
      const own = [at(), ...all(stops, at())];
      own[(own.indexOf(document.activeElement) + way + own.length) % own.length].focus();
    };
    const end = (place) => () => go(at().parentElement.cells[place(at().parentElement.cells.length)]);
    keys(body, {
      ArrowDown: by(1, 0), ArrowUp: by(-1, 0), ArrowRight: by(0, 1), ArrowLeft: by(0, -1),
      Home: end(() => 0), End: end((length) => length - 1),
      PageDown: () => go(rows().at(-1).cells[at().cellIndex]),
      PageUp: () => go(rows()[0].cells[at().cellIndex]),
      Enter: () => document.activeElement.matches(stops) ? false : inside(1)(),
      Escape: () => go(at()),
      F2: inside(1),
    });
    rove(cells, cells[0]);
  };

  // --- tree view ---

  const tree = (top) => {
    top.setAttribute("role", "tree");
    const group = (item) => item.parentElement.querySelector(":scope > ul");
    for (const entry of all("li", top)) {
      entry.setAttribute("role", "none");
      const item = entry.firstElementChild;
      set(item, { role: "treeitem", tabindex: "-1" });
      const inner = group(item);
      if (inner) {
        inner.setAttribute("role", "group");
        set(item, { "aria-expanded": "true", "aria-owns": idOf(inner) });
        if (!item.matches("a")) on(item, "click", () => open(item, inner.hidden));
      }
    }
    const items = () => all("[role=treeitem]", top).filter((item) => !item.closest("ul[hidden]"));
    const go = (item) => {
      rove(all("[role=treeitem]", top), item);
      item.focus();
    };
    const open = (item, wide) => {
      const inner = group(item);
      if (!inner) return;
      inner.hidden = !wide;
      item.setAttribute("aria-expanded", String(wide));
    };
    const here = () => document.activeElement;
    const beside = (by) => {
      const shown = items();
      const next = shown[shown.indexOf(here()) + by];
      if (next) go(next);
    };
    keys(top, {
      ArrowDown: () => beside(1),
      ArrowUp: () => beside(-1),
      Home: () => go(items()[0]),
      End: () => go(items().at(-1)),
      ArrowRight: () => {
        const inner = group(here());
        if (inner?.hidden) open(here(), true);
        else if (inner) go(inner.querySelector("[role=treeitem]"));
      },
      ArrowLeft: () => {
        const inner = group(here());
        if (inner && !inner.hidden) return open(here(), false);
        const around = here().closest("ul").parentElement.querySelector(":scope > [role=treeitem]");
        if (around) go(around);
      },
      "*": () => {
        for (const entry of here().closest("ul").children) open(entry.firstElementChild, true);
      },
      Enter: () => here().matches("a") ? false : here().click(),
      any: (event) => typed(items(), event),
    });
    rove(all("[role=treeitem]", top), items()[0]);
  };

  // --- feed: the next part of a list comes to its end ---

  const feed = (box) => {
    const place = (within) => within.querySelector("tbody") ?? within.querySelector("ul");
    const list = place(box);
    const articles = list.matches("ul");
    const next = (within) => within.querySelector("a[rel=next]");
    const number = (ended) => {
      if (articles)
        for (const [at, entry] of [...list.children].entries())
          set(entry, { role: "article", tabindex: "0", "aria-posinset": at + 1,
            "aria-setsize": ended ? list.children.length : -1 });
    };
    const more = (link) => {
      const loader = button(textOf(link), { class: "more" });
      link.replaceWith(loader);
      on(loader, "click", () => {
        if (loader.disabled) return;
        loader.disabled = true;
        busy(1);
        list.setAttribute("aria-busy", "true");
        const request = new XMLHttpRequest();
        request.open("GET", link.href);
        request.responseType = "document"; // parsed by the browser, without its scripts
        on(request, "loadend", () => {
          const part = request.response?.querySelector("[data-widget=feed]");
          list.removeAttribute("aria-busy");
          if (part) {
            const entries = [...place(part).children].map((entry) => document.importNode(entry, true));
            list.append(...entries);
            for (const entry of entries) for (const [name, enhance] of WIDGETS)
              all(`[data-widget=${name}]`, entry).forEach(enhance);
            const onward = next(part);
            if (onward) loader.replaceWith(onward);
            if (onward) more(onward);
            else loader.remove();
            number(!onward);
            if (articles) entries[0]?.focus();
          } else loader.disabled = false;
          busy(-1);
        });
        request.send();
      });
    };
    if (articles) {
      list.setAttribute("role", "feed");
      const at = () => [...list.children].indexOf(document.activeElement.closest("[role=article]"));
      keys(list, {
        PageDown: () => list.children[at() + 1]?.focus(),
        PageUp: () => list.children[at() - 1]?.focus(),
      });
      number(!next(box));
    }
    if (next(box)) more(next(box));
  };

  // --- toolbar of a text area ---

  const MARKS = [["Bold", "B", "**", "**"], ["Italic", "I", "_", "_"], ["Code", "<>", "`", "`"],
    ["List", "•", "\n- ", ""], ["Link", "⛓", "[", "](https://)"]];

  const toolbar = (area) => {
    const tools = MARKS.map(([label, sign, before, after]) => {
      const tool = button(sign, { "aria-label": label });
      on(tool, "click", () => {
        const { selectionStart: from, selectionEnd: to, value } = area;
        area.setRangeText(before + value.slice(from, to) + after, from, to, "end");
        area.focus();
      });
      return tool;
    });
    const bar = make("div", { role: "toolbar", "aria-label": "Formatting", class: "toolbar",
      "aria-controls": idOf(area) }, ...tools);
    const go = (tool) => {
      rove(tools, tool);
      tool.focus();
    };
    keys(bar, {
      ArrowRight: () => go(step(tools, 1)), ArrowLeft: () => go(step(tools, -1)),
      Home: () => go(tools[0]), End: () => go(tools.at(-1)),
    });
    rove(tools, tools[0]);
    area.before(bar);
  };

  // --- tooltip ---

  const tooltip = (hint) => {
    const control = document.querySelector(`[aria-describedby="${hint.id}"]`);
    if (!control) return;
    hint.setAttribute("role", "tooltip");
    hint.hidden = true;
    const show = (shown) => () => (hint.hidden = !shown);
    for (const kind of ["focus", "mouseenter"]) on(control, kind, show(true));
    for (const kind of ["blur", "mouseleave"]) on(control, kind, show(false));
    on(control, "keydown", (event) => {
      if (event.key === "Escape") hint.hidden = true;
    });
  };

  // --- toast: a message that can be closed ---

  const toast = (note) => {
    const closer = button("×", { "aria-label": note.dataset.close });
    on(closer, "click", () => note.remove());
    note.append(closer);
  };

  // --- board: a card is dragged to another column, or sent there by its menu ---

  const board = (box) => {
    let held = null;
    for (const card of all("[data-card]", box)) {
      card.draggable = true;
      on(card, "dragstart", (event) => {
        held = card;
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData("text/plain", "");
      });
      on(card, "dragend", () => (held = null));
    }
    for (const column of all("[data-column]", box)) {
      const form = () => held?.querySelector(`[data-to="${CSS.escape(column.dataset.column)}"] form`);
      on(column, "dragover", (event) => {
        if (form()) event.preventDefault();
      });
      on(column, "drop", (event) => {
        event.preventDefault();
        form()?.requestSubmit();
      });
    }
  };

  // --- command palette: the page's links by Ctrl+K ---

  const palette = (nav) => {
    const links = all("a", nav);
    const input = make("input", { type: "text", role: "combobox", "aria-autocomplete": "list",
      "aria-expanded": "true", "aria-label": "Go to", autocomplete: "off" });
    const list = make("ul", { role: "listbox", "aria-label": "Pages" });
    input.setAttribute("aria-controls", idOf(list));
    const box = make("dialog", { class: "palette", "aria-label": "Go to a page" }, input, list);
    let active = 0;
    const show = () => {
      const found = links.filter((link) =>
        textOf(link).toLowerCase().includes(input.value.trim().toLowerCase()));
      active = Math.max(0, Math.min(active, found.length - 1));
      list.replaceChildren(...found.map((link, at) => {
        const item = make("li", { role: "option", "aria-selected": String(at === active) }, textOf(link));
        on(item, "click", () => link.click());
        return item;
      }));
      const chosen = list.children[active];
      set(input, { "aria-activedescendant": chosen ? idOf(chosen) : null });
    };
    const move = (by) => {
      active = (active + by + list.children.length) % Math.max(1, list.children.length);
      show();
    };
    on(input, "input", () => ((active = 0), show()));
    keys(input, {
      ArrowDown: () => move(1), ArrowUp: () => move(-1), Enter: () => list.children[active]?.click(),
    });
    document.body.append(box);
    on(document, "keydown", (event) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey)) return;
      if (document.querySelector("[aria-modal=true]") || box.open) return;
      event.preventDefault();
      input.value = "";
      active = 0;
      box.showModal();
      show();
      input.focus();
    });
  };

  const WIDGETS = Object.entries({ menu, tabs, question, modal, inline, combobox, datepicker, slider,
    upload, carousel, table, grid, tree, feed, toolbar, tooltip, toast, board, palette });
  for (const [name, enhance] of WIDGETS) all(`[data-widget=${name}]`).forEach(enhance);
  busy(0);
})();
