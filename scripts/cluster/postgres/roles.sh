# Run once by the image postgres, in the new primary of compose.yaml.
psql --no-psqlrc --quiet -v ON_ERROR_STOP=1 --username postgres --dbname postgres \
    -v password="$(cat /run/secrets/password)" -v replication="$(cat /run/secrets/replication)" <<'SQL'
CREATE ROLE towebp LOGIN PASSWORD :'password';
CREATE DATABASE towebp OWNER towebp;
CREATE ROLE replication LOGIN REPLICATION PASSWORD :'replication';
-- In force with the start that follows: a commit waits for the standby, so that nothing is lost with the primary.
ALTER SYSTEM SET synchronous_standby_names = '*';
SQL
printf '%s\n' 'local all postgres peer' \
    'hostssl towebp towebp all scram-sha-256' \
    'hostssl replication replication all scram-sha-256' >"$PGDATA/pg_hba.conf"
