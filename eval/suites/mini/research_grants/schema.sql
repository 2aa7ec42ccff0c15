CREATE TABLE department (
  dept_id INTEGER PRIMARY KEY,
  code TEXT NOT NULL,
  name TEXT NOT NULL,
  faculty TEXT NOT NULL
);
CREATE TABLE researcher (
  researcher_id INTEGER PRIMARY KEY,
  given_name TEXT NOT NULL,
  family_name TEXT NOT NULL,
  title TEXT NOT NULL,
  dept_id INTEGER REFERENCES department (dept_id),
  mentor_id INTEGER REFERENCES researcher (researcher_id),
  "group" TEXT,
  start_year INTEGER NOT NULL
);
CREATE TABLE funder (
  funder_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  short_name TEXT NOT NULL,
  country TEXT NOT NULL
);
CREATE TABLE programme (
  programme_id INTEGER PRIMARY KEY,
  funder_id INTEGER NOT NULL REFERENCES funder (funder_id),
  name TEXT NOT NULL,
  max_award_keur INTEGER NOT NULL
);
CREATE TABLE "grant" (
  grant_id INTEGER PRIMARY KEY,
  code TEXT NOT NULL,
  title TEXT NOT NULL,
  programme_id INTEGER NOT NULL REFERENCES programme (programme_id),
  pi_id INTEGER NOT NULL REFERENCES researcher (researcher_id),
  submitted_on TEXT NOT NULL,
  decided_on TEXT,
  decision TEXT,
  award_eur INTEGER
);
CREATE TABLE grant_member (
  grant_id INTEGER NOT NULL REFERENCES "grant" (grant_id),
  researcher_id INTEGER NOT NULL REFERENCES researcher (researcher_id),
  role TEXT NOT NULL,
  PRIMARY KEY (grant_id, researcher_id)
);
CREATE TABLE expense (
  expense_id INTEGER PRIMARY KEY,
  grant_id INTEGER NOT NULL REFERENCES "grant" (grant_id),
  category TEXT NOT NULL,
  booked_on TEXT NOT NULL,
  amount_eur INTEGER NOT NULL,
  reversed INTEGER NOT NULL
);
CREATE TABLE publication (
  publication_id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  year INTEGER NOT NULL,
  journal TEXT NOT NULL,
  doi TEXT
);
CREATE TABLE publication_author (
  publication_id INTEGER NOT NULL REFERENCES publication (publication_id),
  researcher_id INTEGER NOT NULL REFERENCES researcher (researcher_id),
  position INTEGER NOT NULL,
  PRIMARY KEY (publication_id, researcher_id)
);
CREATE TABLE publication_grant (
  publication_id INTEGER NOT NULL REFERENCES publication (publication_id),
  grant_id INTEGER NOT NULL REFERENCES "grant" (grant_id),
  PRIMARY KEY (publication_id, grant_id)
);
