"use strict";
// Everything shown comes from JSON blocks of this page and goes through text nodes: no text is ever markup.
(() => {
  const ROW = 58;
  const COMPARED = 4e6;
  const byId = (id) => document.getElementById(id);
  const parsed = (id) => JSON.parse(byId(id).textContent);

  /** An element with attributes and children; a child that is no node becomes text. */
  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "onclick") node.addEventListener("click", value);
      else if (value !== null) node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((child) => child !== null).map((child) => child instanceof Node ? child : String(child)));
    return node;
  };

  const index = parsed("index");
  const { streams, questions, types, outcomes } = index;
  const signs = ["✓", "↑", "✗", "!"];
  const [ID, DATABASE, QUESTION, EVIDENCE, DIFFICULTY] = [0, 1, 2, 3, 4];

  const episodes = [];
  const firstOf = [];
  streams.forEach((stream, number) => {
    firstOf.push(episodes.length);
    stream.q.forEach((_, position) => episodes.push([number, position]));
  });
  const elsewhere = new Map();
  streams.forEach((stream, number) => stream.q.forEach((question, position) => {
    if (!elsewhere.has(question)) elsewhere.set(question, []);
    elsewhere.get(question).push([number, position]);
  }));

  const kept = new Map();
  const chunkOf = (question) => {
    const number = Math.floor(question / index.chunkSize);
    if (!kept.has(number)) kept.set(number, parsed(`chunk-${number}`));
    return kept.get(number);
  };
  const episodeAt = (number, position) => {
    const chunk = chunkOf(streams[number].q[position]);
    return { chunk, episode: chunk.e[`${number}:${position}`] };
  };
  let schemas = null;
  const schemaOf = (source, database) => {
    schemas = schemas ?? parsed("schemas");
    return Object.hasOwn(schemas[source], database) ? schemas[source][database] : "(not kept)";
  };

  /* Words of SQL, and what changed from one text to the next: the longest common subsequence of them. */

  const words = (sql) => sql.match(/'(?:[^']|'')*'|"[^"]*"|`[^`]*`|[\p{L}\p{N}_]+|\s+|[^]/gu) ?? [];

  const difference = (before, after) => {
    const [a, b] = [words(before), words(after)];
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
    let [endA, endB] = [a.length, b.length];
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA -= 1; endB -= 1; }
    const [n, m] = [endA - start, endB - start];
    if (n * m > COMPARED) return null;
    const width = m + 1;
    const longest = new Uint32Array((n + 1) * width);
    for (let i = n - 1; i >= 0; i -= 1) {
      for (let j = m - 1; j >= 0; j -= 1) {
        longest[i * width + j] = a[start + i] === b[start + j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      }
    }
    const parts = [];
    const push = (kind, word) => {
      if (parts.length && parts[parts.length - 1][0] === kind) parts[parts.length - 1][1] += word;
      else parts.push([kind, word]);
    };
    a.slice(0, start).forEach((word) => push("same", word));
    let [i, j] = [0, 0];
    while (i < n || j < m) {
      if (i < n && j < m && a[start + i] === b[start + j]) { push("same", a[start + i]); i += 1; j += 1; }
      else if (j >= m || (i < n && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) { push("del", a[start + i]); i += 1; }
      else { push("ins", b[start + j]); j += 1; }
    }
    a.slice(endA).forEach((word) => push("same", word));
    return parts;
  };

  const sqlBlock = (sql, before = null) => {
    if (sql === "") return make("p", { class: "soft" }, "(no SQL)");
    if (before === null || before === sql) return make("pre", {}, sql);
    const parts = difference(before, sql);
    if (parts === null) return make("div", {}, make("pre", {}, sql), make("p", { class: "soft" }, "Too long to compare word by word."));
    return make("pre", {}, parts.map(([kind, word]) => kind === "same" ? word : make(kind, {}, word)));
  };

  /* One episode */

  const hashOf = (number, position) => `#episode/${number}/${position}`;
  const titleOf = (number, position) => `${streams[number].name}, order ${streams[number].order}, position ${position}`;
  const linkTo = (number, position, text) => make("a", { href: hashOf(number, position) }, text);
  const plural = (count, one, several) => `${count} ${count === 1 ? one : several}`;

  const tokensOf = (usage) => usage === undefined || usage === null
    ? "tokens unknown (handed in, or not reported)"
    : `${usage[0] ?? "unknown"} prompt + ${usage[1] ?? "unknown"} output tokens`;

  const memoryText = (number, polarity, sources) => {
    const legal = sources.filter((source) => source.polarity === polarity && source.position < streams[number].q.length);
    if (!legal.length) return make("p", { class: "soft" }, "Its text is not in this run.");
    const newest = legal.reduce((one, other) => other.position > one.position ? other : one);
    const { chunk, episode } = episodeAt(number, newest.position);
    const told = episode.k;
    if (!told || told.d === undefined) return make("p", { class: "soft" }, "Its text was not kept.");
    const [before, after] = [episode.a[told.w - 1], episode.a[told.w]].map((attempt) => attempt ? chunk.s[attempt.q] : "");
    const delta = chunk.s[told.d];
    const error = told.e === undefined ? "" : `; error: ${chunk.s[told.e]}`;
    return make("div", {},
      make("p", {}, `${chunk.s[told.t]}; the kept attempt ended ${chunk.s[told.s]}${error}; after the change ${chunk.s[told.o]}. Its question: `,
        make("span", { class: "data" }, questions[streams[number].q[newest.position]][QUESTION])),
      delta === `${before} => ${after}` ? sqlBlock(after, before) : make("pre", {}, delta));
  };

  const memoryBlock = (chunk, number, position, use) => {
    const [id, polarity, score, dense, lexical, same, uses] = use;
    const stream = streams[number];
    const question = questions[stream.q[position]];
    const sources = uses.map(([query, database, at, kind]) => ({ query: chunk.s[query], database: chunk.s[database], position: at, polarity: chunk.s[kind] }));
    const elsewhereOnly = stream.scope === "cross_database";
    const wrong = sources.filter((one) => one.position >= position || one.query === String(question[ID]) || (elsewhereOnly && one.database === question[DATABASE]));
    const rule = `earlier than position ${position}, of another question than ${question[ID]}${elsewhereOnly ? `, of another database than ${question[DATABASE]}` : ""}`;
    const shown = (value) => value === null ? "–" : value.toFixed(3);
    return make("div", { class: "memory" },
      make("p", {}, make("strong", {}, `${chunk.s[polarity]} memory `), make("code", { title: chunk.s[id] }, chunk.s[id].slice(0, 12)),
        ` score ${shown(score)} = mixture of vector ${shown(dense)} and BM25 ${shown(lexical)}; ${same ? "same failure type" : "another failure type"}`),
      wrong.length
        ? make("p", { class: "bad" }, `Not eligible by this record: ${plural(wrong.length, "source is", "sources are")} not ${rule}.`)
        : make("p", {}, `Eligible: ${sources.length === 1 ? "its one source is" : `each of its ${sources.length} sources is`} ${rule}:`),
      make("ul", {}, sources.slice(0, 20).map((one) => {
        const text = `position ${one.position}`;
        const link = one.position < stream.q.length ? linkTo(number, one.position, text) : text;
        return make("li", {}, link, `, question ${one.query} on ${one.database}, ${one.polarity}`);
      }), sources.length > 20 ? make("li", {}, `and ${sources.length - 20} more`) : null),
      memoryText(number, chunk.s[polarity], sources));
  };

  const attemptBlock = (chunk, episode, number, position, step) => {
    const attempt = episode.a[step];
    const text = (key) => chunk.s[attempt[key]];
    const sqls = episode.a.map((one) => chunk.s[one.q]);
    const equal = sqls.slice(0, step).indexOf(sqls[step]);
    const right = attempt.v === 1;
    const notes = [];
    if (attempt.e !== undefined) notes.push(make("p", {}, "Error: ", make("span", { class: "data" }, text("e"))));
    if (attempt.f) {
      const [kind, subtype, decided] = attempt.f.map((one) => chunk.s[one]);
      notes.push(make("p", {}, "Failure type: ", make("strong", {}, kind), ` (${subtype})`, decided ? make("span", {}, ", decided by “", make("span", { class: "data" }, decided), "”") : null));
    }
    if (equal >= 0) notes.push(make("p", {}, make("strong", {}, `The same SQL as attempt ${equal}.`)));
    if (attempt.p !== undefined) notes.push(make("p", {}, `Refused as a repeat of attempt ${attempt.p}.`));
    const extra = [tokensOf(attempt.u)];
    if (attempt.o !== undefined) extra.push(`official score ${attempt.o}`);
    if (attempt.d !== undefined) extra.push(`draw ${attempt.d}`);
    if (attempt.z !== undefined) extra.push(`reply ended: ${text("z")}`);
    if (attempt.x) extra.push(`left out of the prompt: ${attempt.x.map((one) => chunk.s[one]).join(", ")}`);
    notes.push(make("p", { class: "soft" }, extra.join("; ")));
    const memories = attempt.m === undefined ? [] : chunk.m[attempt.m];
    const reflections = episode.r.filter(([at]) => at === step);
    return make("section", { class: `attempt ${right ? "right" : "wrong"}`, "aria-label": `Attempt ${step}` },
      make("h4", {}, step === 0 ? "Attempt 0, the initial prediction" : `Attempt ${step}, revision ${step}`,
        make("span", { class: "chip" }, `${right ? "✓" : "✗"} ${text("s")}`)),
      sqlBlock(sqls[step], step ? sqls[step - 1] : null), notes,
      reflections.map(([, said, usage]) => make("details", { open: "" }, make("summary", {}, "Reflection on this attempt"),
        make("p", { class: "data" }, chunk.s[said]), make("p", { class: "soft" }, tokensOf(usage)))),
      memories.length ? make("details", { open: memories.length < 3 ? "" : null }, make("summary", {}, `${plural(memories.length, "memory", "memories")} shown to the model for this attempt`),
        memories.map((use) => memoryBlock(chunk, number, position, use))) : null);
  };

  const show = (number, position) => {
    const stream = streams[number];
    const question = questions[stream.q[position]];
    const { chunk, episode } = episodeAt(number, position);
    const twins = elsewhere.get(stream.q[position]).filter(([other, at]) => other !== number || at !== position);
    const told = episode.k;
    byId("detail").replaceChildren(
      make("h3", {}, `Episode ${position}: ${stream.name}, order ${stream.order}`, make("span", { class: "chip" }, `${signs[stream.o[position]]} ${outcomes[stream.o[position]]}`)),
      make("p", { class: "question data" }, question[QUESTION]),
      make("dl", {},
        make("dt", {}, "Question id"), make("dd", {}, question[ID]),
        make("dt", {}, "Database"), make("dd", { class: "data" }, question[DATABASE]),
        make("dt", {}, "Difficulty"), make("dd", { class: "data" }, question[DIFFICULTY] || "not given"),
        make("dt", {}, "Evidence"), make("dd", { class: "data" }, question[EVIDENCE] || "none"),
        make("dt", {}, "Left in memory"), make("dd", {}, told ? `a ${chunk.s[told.p]} observation ` : "nothing", told ? make("code", { title: chunk.s[told.id] }, chunk.s[told.id].slice(0, 12)) : null)),
      schemaBlock(stream.source, question[DATABASE]),
      twins.length ? make("details", { open: "" }, make("summary", {}, "The same question in other streams"),
        make("ul", { class: "elsewhere" }, twins.map(([other, at]) => make("li", {}, linkTo(other, at, titleOf(other, at)), `: ${outcomes[streams[other].o[at]]}`)))) : "",
      ...episode.a.map((_, step) => attemptBlock(chunk, episode, number, position, step)));
  };

  const schemaBlock = (source, database) => {
    const block = make("details", {}, make("summary", {}, "Schema"));
    block.addEventListener("toggle", () => {
      if (block.childElementCount === 1) block.append(make("pre", {}, schemaOf(source, database)));
    });
    return block;
  };

  /* The list: only the rows in sight exist */

  const list = byId("list");
  const rows = byId("rows");
  let chosen = [];
  let active = -1;

  const row = (place) => {
    const [number, position] = chosen[place];
    const stream = streams[number];
    const question = questions[stream.q[position]];
    const kind = stream.t[position] < 0 ? "" : `, ${types[stream.t[position]]}`;
    const node = make("div", { class: "row", role: "option", id: `row-${place}`, "aria-selected": String(place === active), "aria-posinset": place + 1, "aria-setsize": chosen.length,
      onclick: () => { list.focus({ preventScroll: true }); choose(place); } },
    make("div", { class: "data" }, question[QUESTION].replace(/\s+/g, " ").slice(0, 200)),
    make("div", { class: "meta" }, `${signs[stream.o[position]]} ${outcomes[stream.o[position]]}${kind} · ${position} · ${stream.name} ${stream.order} · ${question[DATABASE]}`));
    node.style.top = `${place * ROW}px`;
    return node;
  };

  const draw = () => {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
    const last = Math.min(chosen.length, first + Math.ceil(list.clientHeight / ROW) + 8);
    const visible = [];
    for (let place = first; place < last; place += 1) visible.push(row(place));
    if (active >= 0 && (active < first || active >= last)) visible.push(row(active));
    rows.replaceChildren(...visible);
    if (active >= 0) list.setAttribute("aria-activedescendant", `row-${active}`);
    else list.removeAttribute("aria-activedescendant");
  };

  const choose = (place) => {
    if (!chosen.length) return;
    const [number, position] = chosen[Math.max(0, Math.min(place, chosen.length - 1))];
    history.replaceState(null, "", hashOf(number, position));
    arrive(number, position);
  };

  const arrive = (number, position) => {
    let place = chosen.findIndex(([one, at]) => one === number && at === position);
    if (place < 0) {
      byId("filters").reset();
      filter();
      place = firstOf[number] + position;
    }
    active = place;
    const top = place * ROW;
    if (top < list.scrollTop || top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = Math.max(0, top - list.clientHeight / 3);
    draw();
    show(number, position);
  };

  list.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  window.addEventListener("resize", () => requestAnimationFrame(draw));
  list.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const moves = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: chosen.length - 1 };
    if (event.key in moves) choose(moves[event.key]);
    else if (event.key === "Enter") byId("detail").focus();
    else return;
    event.preventDefault();
  });
  byId("detail").addEventListener("keydown", (event) => {
    if (event.key === "Escape") list.focus();
  });

  /* Filters */

  const options = (id, every, values) => byId(id).append(make("option", { value: "" }, every), ...values.map(([value, text]) => make("option", { value }, text)));
  const distinct = (values) => [...new Set(values)];
  const names = distinct(streams.map((stream) => stream.name));
  options("f-method", "all", names.map((name, place) => [place, name]));
  options("f-order", "all", distinct(streams.map((stream) => stream.order)).sort((a, b) => a - b).map((order) => [order, order]));
  options("f-outcome", "all", outcomes.map((text, place) => [place, text]));
  options("f-type", "all", types.map((text, place) => [place, text]));
  const databases = distinct(questions.map((question) => question[DATABASE])).sort();
  options("f-database", "all", databases.map((name, place) => [place, name]));

  /** For a text in lower case: the questions and the episodes in which it stands. */
  const lowered = questions.map((question) => `${question[ID]}\n${question[QUESTION]}\n${question[EVIDENCE]}`.toLowerCase());
  const small = new Map();
  const matching = (text) => {
    const inQuestion = lowered.map((one) => one.includes(text));
    const inEpisode = new Set();
    for (let number = 0; byId(`chunk-${number}`) || number * index.chunkSize < questions.length; number += 1) {
      if (!byId(`chunk-${number}`)) continue;
      const chunk = chunkOf(number * index.chunkSize);
      if (!small.has(number)) small.set(number, chunk.s.map((one) => one.toLowerCase()));
      const hits = new Set();
      small.get(number).forEach((one, place) => { if (one.includes(text)) hits.add(place); });
      if (!hits.size) continue;
      for (const [key, episode] of Object.entries(chunk.e)) {
        if (episode.a.some((attempt) => hits.has(attempt.q) || (attempt.e !== undefined && hits.has(attempt.e)))) inEpisode.add(key);
      }
    }
    return (number, position) => inQuestion[streams[number].q[position]] || inEpisode.has(`${number}:${position}`);
  };

  const filter = () => {
    const value = (id) => byId(id).value;
    const [method, order, result, type, database] = ["f-method", "f-order", "f-outcome", "f-type", "f-database"].map(value);
    const text = value("f-text").trim().toLowerCase();
    const matches = text ? matching(text) : () => true;
    chosen = episodes.filter(([number, position]) => {
      const stream = streams[number];
      return (method === "" || stream.name === names[Number(method)])
        && (order === "" || stream.order === Number(order))
        && (result === "" || stream.o[position] === Number(result))
        && (type === "" || stream.t[position] === Number(type))
        && (database === "" || questions[stream.q[position]][DATABASE] === databases[Number(database)])
        && matches(number, position);
    });
    active = -1;
    byId("count").textContent = `${chosen.length.toLocaleString("en")} of ${episodes.length.toLocaleString("en")} episodes`;
    rows.style.height = `${chosen.length * ROW}px`;
    list.scrollTop = 0;
    draw();
  };

  let waiting = 0;
  byId("filters").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
  byId("filters").addEventListener("reset", () => setTimeout(filter, 0));
  byId("filters").addEventListener("submit", (event) => { event.preventDefault(); filter(); });

  /* Going to an episode: by the form, or by the address */

  const findStream = () => {
    const [method, order] = [byId("f-method").value, byId("f-order").value];
    const wanted = (stream) => (method === "" || stream.name === names[Number(method)]) && (order === "" || stream.order === Number(order));
    return wanted(streams[index.opened[0]]) ? index.opened[0] : streams.findIndex(wanted);
  };

  byId("goto").addEventListener("submit", (event) => {
    event.preventDefault();
    const value = byId("goto-value").value.trim();
    const number = findStream();
    const said = byId("goto-said");
    if (number < 0) { said.textContent = "No stream has this method and this order."; return; }
    const stream = streams[number];
    const byQuestion = byId("goto-kind").value === "question";
    const position = byQuestion ? stream.q.findIndex((one) => String(questions[one][ID]) === value) : /^\d+$/.test(value) ? Number(value) : -1;
    if (position < 0 || position >= stream.q.length) {
      said.textContent = byQuestion
        ? `${stream.name}, order ${stream.order}, has no question ${value}.`
        : `${stream.name}, order ${stream.order}, has positions 0 to ${stream.q.length - 1}.`;
      return;
    }
    said.textContent = "";
    history.replaceState(null, "", hashOf(number, position));
    arrive(number, position);
    byId("detail").focus();
  });

  const fromHash = (scroll) => {
    const found = /^#episode\/(\d+)\/(\d+)$/.exec(location.hash);
    if (!found) return false;
    const [number, position] = [Number(found[1]), Number(found[2])];
    if (!streams[number] || position >= streams[number].q.length) {
      byId("goto-said").textContent = "The address names an episode that is not in this report.";
      byId("episodes").scrollIntoView();
      return false;
    }
    arrive(number, position);
    if (scroll) {
      byId("detail").scrollIntoView();
      byId("detail").focus({ preventScroll: true });
    }
    return true;
  };
  window.addEventListener("hashchange", () => fromHash(true));

  byId("browser").hidden = false;
  filter();
  if (!fromHash(true)) arrive(...index.opened);
})();
