-- Jobs in the order of a metric's last value: see db_metrics_order().
CREATE INDEX series_by_value ON series (name, last_value, job);
