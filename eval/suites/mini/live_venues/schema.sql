CREATE TABLE venue (
  venue_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  town TEXT NOT NULL,
  capacity INTEGER,
  indoor INTEGER NOT NULL
);
CREATE TABLE promoter (
  promoter_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  town TEXT NOT NULL
);
CREATE TABLE artist (
  artist_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  genre TEXT NOT NULL,
  country TEXT NOT NULL,
  formed INTEGER
);
CREATE TABLE event (
  event_id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  venue_id INTEGER NOT NULL REFERENCES venue (venue_id),
  promoter_id INTEGER REFERENCES promoter (promoter_id),
  held_on TEXT NOT NULL,
  announced_on TEXT NOT NULL,
  cancelled INTEGER NOT NULL
);
CREATE TABLE performance (
  event_id INTEGER NOT NULL REFERENCES event (event_id),
  artist_id INTEGER NOT NULL REFERENCES artist (artist_id),
  slot INTEGER NOT NULL,
  fee INTEGER,
  PRIMARY KEY (event_id, artist_id)
);
CREATE TABLE ticket_type (
  ticket_type_id INTEGER PRIMARY KEY,
  event_id INTEGER NOT NULL REFERENCES event (event_id),
  label TEXT NOT NULL,
  price_cents INTEGER NOT NULL,
  quota INTEGER NOT NULL
);
CREATE TABLE buyer (
  buyer_id INTEGER PRIMARY KEY,
  "first name" TEXT NOT NULL,
  "last name" TEXT NOT NULL,
  email TEXT NOT NULL,
  town TEXT NOT NULL,
  newsletter INTEGER
);
CREATE TABLE sale (
  sale_id INTEGER PRIMARY KEY,
  ticket_type_id INTEGER NOT NULL REFERENCES ticket_type (ticket_type_id),
  buyer_id INTEGER NOT NULL REFERENCES buyer (buyer_id),
  quantity INTEGER NOT NULL,
  sold_at TEXT NOT NULL,
  refunded INTEGER NOT NULL
);
