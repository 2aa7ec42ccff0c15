CREATE TABLE port (
  code TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  country TEXT NOT NULL
);
CREATE TABLE vessel (
  vessel_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  flag TEXT NOT NULL,
  capacity_teu INTEGER NOT NULL,
  built INTEGER NOT NULL,
  retired_on TEXT
);
CREATE TABLE voyage (
  voyage_id INTEGER PRIMARY KEY,
  vessel_id INTEGER NOT NULL REFERENCES vessel (vessel_id),
  origin_code TEXT NOT NULL REFERENCES port (code),
  destination_code TEXT NOT NULL REFERENCES port (code),
  departed_on TEXT NOT NULL,
  arrived_on TEXT
);
CREATE TABLE customer (
  customer_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  country TEXT NOT NULL,
  parent_id INTEGER REFERENCES customer (customer_id),
  credit_limit TEXT
);
CREATE TABLE commodity (
  commodity_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  hazard_class TEXT
);
CREATE TABLE shipment (
  shipment_id INTEGER PRIMARY KEY,
  reference TEXT NOT NULL,
  customer_id INTEGER NOT NULL REFERENCES customer (customer_id),
  voyage_id INTEGER REFERENCES voyage (voyage_id),
  created TEXT NOT NULL,
  priority INTEGER NOT NULL
);
CREATE TABLE shipment_item (
  shipment_id INTEGER NOT NULL REFERENCES shipment (shipment_id),
  line_no INTEGER NOT NULL,
  commodity_id INTEGER NOT NULL REFERENCES commodity (commodity_id),
  packages INTEGER NOT NULL,
  "gross weight" INTEGER,
  PRIMARY KEY (shipment_id, line_no)
);
CREATE TABLE invoice (
  invoice_id INTEGER PRIMARY KEY,
  shipment_id INTEGER NOT NULL REFERENCES shipment (shipment_id),
  issued_on TEXT NOT NULL,
  due_on TEXT NOT NULL,
  amount_cents INTEGER NOT NULL,
  currency TEXT NOT NULL,
  status TEXT NOT NULL
);
CREATE TABLE payment (
  payment_id INTEGER PRIMARY KEY,
  invoice_id INTEGER NOT NULL REFERENCES invoice (invoice_id),
  paid_on TEXT NOT NULL,
  amount_cents INTEGER NOT NULL
);
