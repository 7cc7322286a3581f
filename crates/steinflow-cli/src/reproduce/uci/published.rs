//! The paper's own numbers, to stand beside ours.

/// `metric,method,dataset,mean,sd` from the tables of Shen, Heinonen and Kaski (2021).
const NUMBERS: &str = include_str!("../../../../../experiments/uci/paper.csv");

/// The published mean and standard deviation, where there is one.
pub fn number(metric: &str, method: &str, dataset: &str) -> Option<(f64, f64)> {
    NUMBERS.lines().skip(1).find_map(|line| {
        let [of_metric, of_method, of_dataset, mean, sd] =
            line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let here = (of_metric, of_method, of_dataset) == (metric, method, dataset);
        here.then_some((mean.parse().ok()?, sd.parse().ok()?))
    })
}

/// The best of any method, for scores where more is better.
pub fn best(metric: &str, dataset: &str) -> Option<f64> {
    let of_here = |line: &&str| {
        let fields: Vec<&str> = line.split(',').collect();
        fields.len() == 5 && fields[0] == metric && fields[2] == dataset
    };
    let values = NUMBERS.lines().skip(1).filter(of_here);
    values.filter_map(|line| line.split(',').nth(3)?.parse().ok()).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tables_read() {
        let found = super::number("log_likelihood", "SGNHT-Stein", "energy");
        assert_eq!(found, Some((-0.44, 0.10)));
        assert_eq!(super::best("log_likelihood", "energy"), Some(-0.32));
        assert_eq!(super::number("log_likelihood", "SGNHT-Stein", "penguins"), None);
    }
}
