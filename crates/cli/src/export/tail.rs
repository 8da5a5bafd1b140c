//! All messages of `dyno tail` as one table, with a row per message and consumer.

use crate::export::table::{Cell, Column, Kind, Table};
use dyno_engine::Error;
use dyno_record::messages::{MESSAGE_COLUMNS, MESSAGES, RECEIPT_COLUMNS, RECEIPTS, read};
use dyno_record::tail::{Cell as Measurement, TailDocument};
use std::collections::HashMap;
use std::path::Path;

/// The columns. Instants refer to the clock named in `tail.json`.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::new("cell", Kind::Text),
        Column::new("producer", Kind::Integer),
        Column::new("producer_driver", Kind::Text),
        Column::new("consumer", Kind::Integer),
        Column::new("consumer_driver", Kind::Text),
        Column::new("n", Kind::Integer),
        Column::new("intended_ns", Kind::Integer),
        Column::new("send_ns", Kind::Integer),
        Column::optional("acknowledged_ns", Kind::Integer),
        Column::optional("failed_ns", Kind::Integer),
        Column::optional("received_ns", Kind::Integer),
    ]
}

/// Writes the messages of all cells. The first receipt of a duplicate message counts.
pub(crate) fn fill(
    folder: &Path,
    document: &TailDocument,
    table: &mut dyn Table,
) -> Result<(), Error> {
    let measured = document.cells.iter().filter(|cell| cell.measured.is_some());
    for cell in measured {
        of_cell(&folder.join("cells").join(&cell.name), cell, table)?;
    }
    Ok(())
}

fn of_cell(folder: &Path, cell: &Measurement, table: &mut dyn Table) -> Result<(), Error> {
    let [senders, sequence, intended, sent, answered] =
        read(&folder.join(MESSAGES), MESSAGE_COLUMNS)?;
    let [consumers, producers, numbers, received, _] =
        read(&folder.join(RECEIPTS), RECEIPT_COLUMNS)?;
    let mut receipts = HashMap::with_capacity(numbers.len());
    let messages = producers.iter().zip(&numbers);
    for ((consumer, (producer, n)), received) in consumers.iter().zip(messages).zip(&received) {
        let first = receipts.entry((*consumer, *producer, *n));
        let first = first.or_insert(*received);
        *first = (*first).min(*received);
    }
    let drivers = &cell.settings.producers;
    let driver_of = |producer: i64| {
        let driver = usize::try_from(producer).ok().and_then(|number| drivers.get(number));
        driver.map_or("", String::as_str)
    };
    for (consumer, consumer_driver) in (0..).zip(&cell.settings.consumers) {
        for (place, (producer, n)) in senders.iter().zip(&sequence).enumerate() {
            let receipt = receipts.get(&(consumer, *producer, *n)).copied();
            let answered = answered[place];
            table.row(&[
                Cell::Text(&cell.name),
                Cell::Integer(*producer),
                Cell::Text(driver_of(*producer)),
                Cell::Integer(consumer),
                Cell::Text(consumer_driver),
                Cell::Integer(*n),
                Cell::Integer(intended[place]),
                Cell::Integer(sent[place]),
                Some(answered).filter(|at| *at > 0).into(),
                Some(-answered).filter(|at| *at > 0).into(),
                receipt.into(),
            ])?;
        }
    }
    Ok(())
}
