CREATE TABLE imprint (
  imprint_id INTEGER PRIMARY KEY,
  label TEXT NOT NULL,
  founded INTEGER NOT NULL,
  parent_id INTEGER REFERENCES imprint (imprint_id)
);
CREATE TABLE author (
  author_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  born INTEGER,
  country TEXT NOT NULL
);
CREATE TABLE book (
  book_id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  imprint_id INTEGER NOT NULL REFERENCES imprint (imprint_id),
  language TEXT NOT NULL,
  published TEXT NOT NULL,
  pages INTEGER,
  "list price" REAL NOT NULL,
  sequel_to INTEGER REFERENCES book (book_id)
);
CREATE TABLE book_author (
  book_id INTEGER NOT NULL REFERENCES book (book_id),
  author_id INTEGER NOT NULL REFERENCES author (author_id),
  role TEXT NOT NULL,
  PRIMARY KEY (book_id, author_id, role)
);
CREATE TABLE store (
  store_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  town TEXT NOT NULL,
  manager TEXT
);
CREATE TABLE "order" (
  order_id INTEGER PRIMARY KEY,
  store_id INTEGER NOT NULL REFERENCES store (store_id),
  ordered_on TEXT NOT NULL,
  shipped_on TEXT,
  state TEXT NOT NULL
);
CREATE TABLE order_line (
  order_id INTEGER NOT NULL REFERENCES "order" (order_id),
  line_no INTEGER NOT NULL,
  book_id INTEGER NOT NULL REFERENCES book (book_id),
  quantity INTEGER NOT NULL,
  "unit price" REAL NOT NULL,
  discount TEXT NOT NULL,
  PRIMARY KEY (order_id, line_no)
);
CREATE TABLE review (
  review_id INTEGER PRIMARY KEY,
  book_id INTEGER NOT NULL REFERENCES book (book_id),
  reviewer TEXT NOT NULL,
  stars INTEGER,
  posted_on TEXT NOT NULL,
  deleted INTEGER NOT NULL
);
CREATE TABLE royalty (
  royalty_id INTEGER PRIMARY KEY,
  author_id INTEGER NOT NULL REFERENCES author (author_id),
  book_id INTEGER NOT NULL REFERENCES book (book_id),
  year INTEGER NOT NULL,
  amount_cents INTEGER NOT NULL
);
