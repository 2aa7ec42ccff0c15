CREATE TABLE specialty (
  code TEXT PRIMARY KEY,
  label TEXT NOT NULL
);
CREATE TABLE insurer (
  insurer_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL
);
CREATE TABLE clinic (
  clinic_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  city TEXT NOT NULL,
  opened TEXT NOT NULL,
  beds INTEGER,
  status TEXT NOT NULL
);
CREATE TABLE practitioner (
  practitioner_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  specialty_code TEXT NOT NULL REFERENCES specialty (code),
  home_clinic_id INTEGER NOT NULL REFERENCES clinic (clinic_id),
  supervisor_id INTEGER REFERENCES practitioner (practitioner_id),
  hired_on TEXT NOT NULL,
  left_on TEXT
);
CREATE TABLE patient (
  patient_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  birth_date TEXT NOT NULL,
  sex TEXT NOT NULL,
  city TEXT NOT NULL,
  insurer_id INTEGER REFERENCES insurer (insurer_id),
  deceased_on TEXT
);
CREATE TABLE appointment (
  appointment_id INTEGER PRIMARY KEY,
  patient_id INTEGER NOT NULL REFERENCES patient (patient_id),
  practitioner_id INTEGER NOT NULL REFERENCES practitioner (practitioner_id),
  clinic_id INTEGER NOT NULL REFERENCES clinic (clinic_id),
  booked_at TEXT NOT NULL,
  scheduled_at TEXT NOT NULL,
  status TEXT NOT NULL,
  fee_cents INTEGER
);
CREATE TABLE diagnosis (
  code TEXT PRIMARY KEY,
  title TEXT NOT NULL,
  chronic INTEGER NOT NULL
);
CREATE TABLE appointment_diagnosis (
  appointment_id INTEGER NOT NULL REFERENCES appointment (appointment_id),
  diagnosis_code TEXT NOT NULL REFERENCES diagnosis (code),
  is_primary INTEGER NOT NULL,
  PRIMARY KEY (appointment_id, diagnosis_code)
);
CREATE TABLE prescription (
  prescription_id INTEGER PRIMARY KEY,
  appointment_id INTEGER NOT NULL REFERENCES appointment (appointment_id),
  drug TEXT NOT NULL,
  days INTEGER NOT NULL,
  repeats INTEGER,
  issued_on TEXT NOT NULL
);
